import { engineWire } from "@seatrial/engines"
import type { KubeClient, Node } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { answerText, gauge, mostMetricsBytes } from "@seatrial/trial"
import { Effect } from "effect"
import { HttpClient } from "effect/http"
import { drainTime } from "../limits.ts"
import { wantedPod } from "../objects/wantedPod.ts"
import { isServed } from "../observation/isServed.ts"
import type { ObservedEngine } from "../observation/ObservedEngine.ts"
import { type ObservedPod, whichStart } from "../observation/ObservedPod.ts"
import { engineOrdinal, enginePodName } from "../resources/objectNames.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { admissionOf } from "./admission.ts"
import { observeBoot } from "./BootVerdicts.ts"
import type { GatherFrom } from "./gather.ts"
import { keepSince } from "./keepSince.ts"
import { isOutdated } from "./readDownload.ts"
import { readPod } from "./readEngine.ts"

/** An engine above the first as it was read. `elsewhere` depends on the pool at the moment of the decision. */
export interface ReadEngine {
  readonly observed: Omit<ObservedEngine, "elsewhere">
  readonly node: Node | undefined
}

/** The ordinals of the engines above the first that exist or are wanted. */
const ordinalsOf = (run: Run, pods: ReadonlyArray<WatchedPod>): ReadonlyArray<number> => {
  const present = pods.flatMap(({ metadata }) => engineOrdinal(run.engineRun, metadata.name) ?? [])
  const wanted =
    run.engineRun === run.id && isServed({ run }) && run.replacedBy === null ? Array.from({ length: run.replicas ?? 1 }, (_, ordinal) => ordinal) : []
  return [...new Set([...present, ...wanted])].filter((ordinal) => ordinal > 0).sort((one, other) => one - other)
}

/** The requests that the engine runs or queues; null if it does not answer. */
export const requestsOf = Effect.fnUntraced(function* ({ revision }: Run, { url }: ObservedPod) {
  if (revision === null || url === null) return null
  const http = yield* HttpClient.HttpClient
  const text = yield* http.get(`${url}/metrics`).pipe(
    Effect.flatMap((response) => answerText(response, mostMetricsBytes)),
    Effect.timeout("2 seconds"),
    Effect.orElseSucceed(() => "")
  )
  return gauge(text, engineWire(revision.settings.runtime).trialMetrics.requests)
})

interface EnginesQuestion {
  readonly run: Run
  readonly podClass: PodClass | null
  /** All pods of the run, and of the run that owns its engines. */
  readonly pods: ReadonlyArray<WatchedPod>
  /** Unix milliseconds. */
  readonly now: number
}

const readOne = Effect.fnUntraced(function* (from: GatherFrom, { now, podClass, pods, run }: EnginesQuestion, ordinal: number) {
  const { cluster, memory, settings } = from
  const name = enginePodName(run.engineRun, ordinal)
  const { node, pod } = yield* readPod(
    from,
    pods.find(({ metadata }) => metadata.name === name),
    name,
    now
  )
  const { with: begunWith, ...work } = yield* memory.background.state(run.id, ordinal)
  const hasTraffic = run.endpoints.some((endpoint) => endpoint.pod === name)
  const withdrawnAt = keepSince(memory.idleEngines, name, pod !== null && !hasTraffic, now)
  const isAsked = run.engineRun === run.id && pod?.ready === true && withdrawnAt !== null && now >= withdrawnAt + drainTime
  const observed: ReadEngine["observed"] = {
    ordinal,
    pod,
    boot: observeBoot(memory.bootVerdicts, run, podClass, pod),
    admission: pod?.gated === true ? yield* admissionOf(pod.uid, cluster.namespace) : null,
    outdated: pod !== null && !pod.started && pod.madeFrom !== null && isOutdated(pod.madeFrom, wantedPod(run, podClass, settings, { ordinal })),
    work,
    sameStart: work.running !== null && begunWith === whichStart(pod),
    withdrawnAt,
    requests: isAsked ? yield* requestsOf(run, pod) : null
  }
  return { observed, node }
})

/** Reads the engines above the first. */
export const readEngines = (from: GatherFrom, question: EnginesQuestion): Effect.Effect<ReadonlyArray<ReadEngine>, never, KubeClient | HttpClient.HttpClient> =>
  Effect.forEach(ordinalsOf(question.run, question.pods), (ordinal) => readOne(from, question, ordinal))
