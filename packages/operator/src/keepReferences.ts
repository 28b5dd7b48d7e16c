import { Job, KubeClient, WorkQueue } from "@seatrial/kube"
import { Effect, Option } from "effect"
import { ignoreNotFound } from "./apply/ignoreNotFound.ts"
import type { Cluster } from "./gather/Cluster.ts"
import { observeReferenceJob } from "./gather/observeReference.ts"
import type { ReferenceUsers } from "./gather/references/ReferenceUsers.ts"
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

/** Deletes a Job that no run uses. */
const removeUnused = Effect.fnUntraced(function* ({ namespace }: Cluster, { metadata: { name, uid } }: WatchedJob) {
  yield* Effect.logInfo(`no run uses the reference that ${name} computes; the Job is deleted`)
  yield* ignoreNotFound((yield* KubeClient).remove(Job, name, namespace, { propagation: "Background", ...(uid === undefined ? {} : { uid }) }))
  yield* operatorMetrics.references.update({ outcome: "unused" }, 1)
})

/** The queue of passes over the Jobs that compute references, by name. They are deleted if no run uses them. */
export const keepReferences = Effect.fnUntraced(function* (cluster: Cluster, references: () => ReferenceUsers) {
  const { jobs, namespace, pods, referenceJobs } = cluster
  const show = yield* makeJobMetrics
  return yield* WorkQueue.make({
    name: "references",
    concurrency: 1,
    work: Effect.fnUntraced(function* (name: string) {
      const job = referenceJobs.has(name) ? Option.getOrUndefined(yield* jobs.get(name, namespace)) : undefined
      const state = job === undefined ? null : observeReferenceJob(job, yield* pods.listByLabel(referenceLabel, name))
      yield* show(name, state)
      if (job !== undefined && state?._tag !== "Leaving" && references().isUnused(name)) yield* removeUnused(cluster, job)
      return Option.none()
    })
  })
})
