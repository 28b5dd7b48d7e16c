import { Job, KubeClient, WorkQueue } from "@seatrial/kube"
import { Clock, Duration, Effect, Option } from "effect"
import { ignoreNotFound } from "./apply/ignoreNotFound.ts"
import type { Cluster } from "./gather/Cluster.ts"
import { observeReferenceJob, unplacedSince } from "./gather/observeReference.ts"
import type { ReferenceUsers } from "./gather/references/ReferenceUsers.ts"
import { referencePatience, referenceRest } from "./limits.ts"
import { operatorMetrics } from "./metrics.ts"
import type { ObservedReference } from "./observation/ObservedReference.ts"
import { referenceLabel } from "./resources/objectNames.ts"
import type { WatchedJob } from "./resources/watched.ts"

/** The states of Jobs that the metric counts. */
const counted = { Active: "running", Unplaced: "unplaced" } as const
const stateOf = ({ _tag }: ObservedReference) => (_tag === "Active" || _tag === "Unplaced" ? counted[_tag] : null)

/** `update` shows the state of a Job, or that it is gone, in the metrics, until the scope closes. */
const makeJobMetrics = Effect.gen(function* () {
  const states = new Map<string, ObservedReference>()
  const { referenceJobs, references } = operatorMetrics
  const count = Effect.forEach(Object.values(counted), (state) =>
    referenceJobs.update({ state }, [...states.values()].filter((each) => stateOf(each) === state).length)
  )
  yield* count
  yield* Effect.addFinalizer(() => Effect.forEach([...Object.values(counted), "waiting"], (state) => referenceJobs.remove({ state }), { discard: true }))
  return Effect.fnUntraced(function* (name: string, state: ObservedReference | null) {
    const before = states.get(name)
    if (state === null) states.delete(name)
    else states.set(name, state)
    yield* count
    // The end of a Job by the cluster. The others are counted when their results are stored.
    if (state?._tag === "Settled" && before?._tag !== "Settled") yield* references.update({ outcome: "not_started" }, 1)
  })
})

/** Why a Job is deleted before it has ended. */
const reasons = {
  unused: "no run uses its result",
  yielded: "no node had room for its pod, and another run waits for its place"
} as const

const removeJob = Effect.fnUntraced(function* ({ namespace, referenceJobs }: Cluster, { metadata: { name, uid } }: WatchedJob, outcome: keyof typeof reasons) {
  yield* Effect.logInfo(`the Job ${name} of a reference is deleted: ${reasons[outcome]}`)
  yield* ignoreNotFound((yield* KubeClient).remove(Job, name, namespace, { propagation: "Background", ...(uid === undefined ? {} : { uid }) }))
  // The watch may be late. Until then no second Job may give up its place for the same run.
  referenceJobs.setJob(name, undefined)
  yield* operatorMetrics.references.update({ outcome }, 1)
})

/**
 * The end of the rest of Jobs that gave their places to others, by name. `check` returns how long the rest still takes;
 * null: the Job does not rest.
 */
const makeRests = (references: () => ReferenceUsers) => {
  const ends = new Map<string, number>()
  return {
    begin: (name: string, now: number) => {
      ends.set(name, now + referenceRest)
      references().rest(name)
      return referenceRest
    },
    check: Effect.fnUntraced(function* (name: string, now: number) {
      const end = ends.get(name)
      if (end === undefined || now < end) return end === undefined ? null : end - now
      ends.delete(name)
      yield* references().rested(name)
      return null
    })
  }
}

/** The shortest delay, of those that are still to come. */
const delayOf = (...delays: ReadonlyArray<number | null>): Option.Option<Duration.Duration> => {
  const coming = delays.filter((delay): delay is number => delay !== null && delay > 0)
  return coming.length === 0 ? Option.none() : Option.some(Duration.millis(Math.min(...coming)))
}

/**
 * The queue of passes over the Jobs that compute references, by name. They are deleted if no run uses them, or if they wait
 * for a node while a run waits for their place.
 */
export const keepReferences = Effect.fnUntraced(function* (cluster: Cluster, references: () => ReferenceUsers) {
  const { jobs, namespace, pods, referenceJobs } = cluster
  const show = yield* makeJobMetrics
  const rests = makeRests(references)
  return yield* WorkQueue.make({
    name: "references",
    concurrency: 1,
    work: Effect.fnUntraced(function* (name: string) {
      const job = referenceJobs.has(name) ? Option.getOrUndefined(yield* jobs.get(name, namespace)) : undefined
      const jobPods = yield* pods.listByLabel(referenceLabel, name)
      const state = job === undefined ? null : observeReferenceJob(job, jobPods)
      yield* show(name, state)
      const now = yield* Clock.currentTimeMillis
      const rest = yield* rests.check(name, now)
      if (job === undefined || state === null || state._tag === "Leaving") return delayOf(rest)
      if (references().isUnused(name)) return yield* Effect.as(removeJob(cluster, job, "unused"), delayOf(rest))
      const since = state._tag === "Unplaced" ? unplacedSince(job, jobPods) : null
      const patience = since === null ? null : since + referencePatience - now
      // If no run waits for the place, the Job is checked again when one begins to.
      if (patience === null || patience > 0 || !references().isWanted(name)) return delayOf(rest, patience)
      // Before the deletion, so that its own runs do not take the place.
      const again = delayOf(rests.begin(name, now))
      return yield* Effect.as(removeJob(cluster, job, "yielded"), again)
    })
  })
})
