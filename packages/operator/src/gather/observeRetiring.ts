import type { KubeClient } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect, Option } from "effect"
import type { HttpClient } from "effect/http"
import { drainTime, provenTime } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import { enginePodName } from "../resources/objectNames.ts"
import type { GatherFrom } from "./gather.ts"
import { keepSince } from "./keepSince.ts"
import { readPod } from "./readEngine.ts"
import { requestsOf } from "./readEngines.ts"

/** The pods among these that have accepted requests for a while, as far as their nodes report now. */
const provenOf = Effect.fnUntraced(function* (from: GatherFrom, names: ReadonlyArray<string>, now: number) {
  const { cluster, memory } = from
  return yield* Effect.filter(
    names,
    Effect.fnUntraced(function* (name) {
      const watched = Option.getOrUndefined(yield* cluster.pods.get(name, cluster.namespace))
      const { pod } = yield* readPod(from, watched, name, now)
      const isUp = pod?.ready === true && !pod.deleting && pod.lost === null && pod.nodeDownSince === null
      const since = keepSince(memory.readySince, name, isUp, now)
      return since !== null && now - since >= provenTime
    })
  )
})

/**
 * For a revision that leaves engine by engine, and for a first engine whose probes differ: the engines of newer revisions that have served for a while, since when
 * its first engine has no endpoint, and the requests of that one. Other revisions leave at once, and Postgres counts
 * their requests.
 */
export const observeRetiring = Effect.fnUntraced(function* (
  from: GatherFrom,
  run: Run,
  { boot, pod }: Pick<Observation, "boot" | "pod">,
  now: number
): Effect.fn.Return<Partial<Pick<Observation, "run" | "withdrawnAt">>, never, HttpClient.HttpClient | KubeClient> {
  const reached = run.newer ?? null
  const isSuspect = boot?.verdict?.outcome === "suspect"
  if ((reached === null && !isSuspect) || run.engineRun !== run.id) return {}
  const name = enginePodName(run.engineRun)
  const hasTraffic = run.endpoints.some((endpoint) => endpoint.pod === name)
  const withdrawnAt = keepSince(from.memory.idleEngines, name, pod !== null && !hasTraffic, now)
  const isReady = pod?.ready === true
  const isAsked = isReady && withdrawnAt !== null && now >= withdrawnAt + drainTime
  const requests = isAsked ? yield* requestsOf(run, pod) : null
  const proven = reached === null ? {} : { newer: yield* provenOf(from, reached, now) }
  return { withdrawnAt, run: { ...run, ...proven, inFlight: isReady ? (requests ?? 1) : 0 } }
})
