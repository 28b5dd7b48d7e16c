import { type DeploymentId, isFinished } from "@seatrial/domain"
import { fromKey, type KubeObject, type Reflector } from "@seatrial/kube"
import type { ChangedRun, Runs } from "@seatrial/store"
import { Duration, Effect, Option, Stream } from "effect"
import { byNode, type Cluster } from "./gather/Cluster.ts"
import { makeCapacityChanges } from "./gather/capacity/capacityChanges.ts"
import type { RunMemory } from "./RunMemory.ts"
import { deploymentOf, deploymentOfName, deploymentOfResource, referenceLabel } from "./resources/objectNames.ts"

/** The cluster, and the passes that its changes request. */
interface TriggerContext {
  readonly cluster: Cluster
  readonly memory: RunMemory
  /** Runs that a change of a host class may concern. */
  readonly liveRuns: Runs["Service"]["live"]
  readonly enqueueRun: (id: DeploymentId) => Effect.Effect<void>
  /** `key`: `namespace/name` of an applied object. */
  readonly enqueueApplied: (key: string) => Effect.Effect<void>
  /** `pod`: name of an engine's pod whose GPUs may have changed. */
  readonly enqueueHold: (pod: string) => Effect.Effect<void>
  /** `job`: name of a Job that may compute a reference. */
  readonly enqueueReference: (job: string) => Effect.Effect<void>
  /** Updates the host classes in Postgres. */
  readonly enqueueClasses: Effect.Effect<void>
  /** Updates the status of the host classes. */
  readonly enqueueClassStatus: Effect.Effect<void>
}

const enqueueAll = ({ enqueueRun }: Pick<TriggerContext, "enqueueRun">, ids: ReadonlyArray<DeploymentId>) => Effect.forEach(ids, enqueueRun, { discard: true })

const enqueueSome = ({ enqueueRun }: TriggerContext, id: Option.Option<DeploymentId>) => (Option.isSome(id) ? enqueueRun(id.value) : Effect.void)

/** Requests a pass over the run of an engine, and over the runs that serve with it. */
const enqueueEngine = (context: TriggerContext, id: Option.Option<DeploymentId>) =>
  Option.isSome(id) ? enqueueAll(context, [id.value, ...context.memory.followers.of(id.value)]) : Effect.void

interface LiveContext extends Pick<TriggerContext, "enqueueRun" | "liveRuns"> {
  readonly memory: Pick<RunMemory, "organizations" | "watchdog"> & { readonly references: Pick<RunMemory["references"], "expect"> }
}

/** Requests a pass over a run, in the turn of its organization. */
export const enqueueChanged = ({ enqueueRun, memory: { organizations } }: Pick<LiveContext, "enqueueRun" | "memory">, { id, orgId }: ChangedRun) =>
  Effect.suspend(() => {
    if (orgId !== null) organizations.set(id, orgId)
    return enqueueRun(id)
  })

/**
 * Requests a pass over every run that has not ended or serves. It is due now, so that the watchdog finds one that is
 * lost.
 */
export const enqueueLive = Effect.fnUntraced(function* (context: LiveContext) {
  const { references, watchdog } = context.memory
  const runs = yield* context.liveRuns
  yield* references.expect(runs.map(({ id }) => id))
  yield* Effect.forEach(runs, ({ id }) => watchdog.expect(id, Option.some(Duration.zero)), { discard: true })
  yield* Effect.forEach(runs, (run) => enqueueChanged(context, run), { discard: true })
})

/** A ModelDeployment has changed. Applied objects are named after their models, all others after their runs. */
const onDeployment = Effect.fnUntraced(function* (context: TriggerContext, key: string) {
  const { cluster, enqueueApplied, enqueueClassStatus, enqueueRun, memory } = context
  yield* enqueueClassStatus
  const { name, namespace } = fromKey(key)
  const run = namespace === cluster.namespace ? deploymentOfResource(name) : Option.none()
  if (Option.isNone(run)) return yield* enqueueApplied(key)
  const object = Option.getOrUndefined(yield* cluster.deployments.get(name, cluster.namespace))
  // The operator's own status write needs no pass, except if it shows the end of the run: then the run can be released.
  const own = memory.statusWrites.get(run.value)?.version
  const phase = object?.status?.phase
  const hasEnded = phase !== undefined && phase !== "refused" && isFinished(phase)
  if (own === undefined || own !== object?.metadata.resourceVersion || hasEnded) yield* enqueueRun(run.value)
})

/** A host class has changed. The operator's own status write needs no pass. */
const makeOnClass = (context: TriggerContext) => {
  const specs = new Map<string, string>()
  return Effect.fnUntraced(function* (name: string) {
    yield* context.enqueueClassStatus
    const object = Option.getOrUndefined(yield* context.cluster.hostClasses.get(name))
    const before = specs.get(name)
    const now = object === undefined ? undefined : JSON.stringify(object.spec)
    if (now === undefined) specs.delete(name)
    else specs.set(name, now)
    if (now === undefined || now !== before) yield* Effect.andThen(context.enqueueClasses, enqueueLive(context))
  })
}

/** The Job of a reference, or one of its pods, has changed. After the end of a Job, others may be created. */
const onReference = Effect.fnUntraced(function* (context: TriggerContext, job: string) {
  const { references } = context.memory
  yield* context.enqueueReference(job)
  yield* enqueueAll(context, [...references.of(job), ...references.next()])
})

/** A Job has changed: the download of a run, or the reference of a commit that several runs may use. */
const onJob = (context: TriggerContext, name: string) => {
  const run = deploymentOfName(name)
  return Option.isSome(run) ? context.enqueueRun(run.value) : onReference(context, name)
}

/** A disruption budget has changed. Only its specification matters, not its status. */
const makeOnBudget = (context: TriggerContext) => {
  const generations = new Map<string, number>()
  const { cluster, memory } = context
  return Effect.fnUntraced(function* (name: string) {
    const run = deploymentOfName(name)
    const budget = Option.getOrUndefined(yield* cluster.budgets.get(name, cluster.namespace))
    const isOwn = Option.isSome(run) && memory.budgetExpectations.delete(run.value)
    const generation = budget === undefined ? undefined : (budget.metadata.generation ?? 1)
    if (generation === generations.get(name)) return
    if (generation === undefined) generations.delete(name)
    else generations.set(name, generation)
    // An object that was just created needs no pass. A correction looks like another edit.
    if (generation !== 1 || !isOwn) yield* enqueueSome(context, run)
  })
}

/** A pod or a node has changed. Runs that wait for GPUs get a pass if the change may free some. */
const makeOnCapacity = (context: TriggerContext) => {
  const { cluster, enqueueClassStatus, enqueueHold, memory } = context
  const { podExpectations, pool } = memory
  const capacity = makeCapacityChanges()
  const enqueueQueued = Effect.suspend(() => enqueueAll(context, pool.queued()))
  const onPod = Effect.fnUntraced(function* (name: string) {
    const pod = Option.getOrUndefined(yield* cluster.pods.get(name, cluster.namespace))
    const own = podExpectations.get(name)
    // The operator knows the state of a pod that it has just created.
    if (own === undefined || own !== pod?.metadata.resourceVersion) {
      podExpectations.delete(name)
      yield* enqueueEngine(context, deploymentOfName(name))
    }
    const reference = pod?.metadata.labels?.[referenceLabel]
    if (reference !== undefined) yield* onReference(context, reference)
    yield* enqueueHold(name)
    yield* enqueueClassStatus
    if (capacity.ofPod(name, pod)) yield* enqueueQueued
  })
  const onNode = Effect.fnUntraced(function* (name: string) {
    if (!capacity.ofNode(name, Option.getOrUndefined(yield* cluster.nodes.get(name)))) return
    yield* enqueueClassStatus
    yield* enqueueQueued
    for (const { metadata } of yield* cluster.pods.listBy(byNode, name))
      yield* Effect.andThen(enqueueEngine(context, deploymentOf(metadata.labels)), enqueueHold(metadata.name))
  })
  const onOtherPods = Effect.suspend(() => Effect.andThen(enqueueClassStatus, enqueueQueued))
  return { onPod, onNode, onOtherPods }
}

const forEachName = <A extends KubeObject, E>(reflector: Reflector<A>, handle: (name: string) => Effect.Effect<void, E>) =>
  Stream.runForEach(reflector.changes, (key) => handle(fromKey(key).name))

/** Requests passes for every change of the cluster. Never ends by itself. */
export const followCluster = (context: TriggerContext) => {
  const { cluster } = context
  const { onNode, onOtherPods, onPod } = makeOnCapacity(context)
  return Effect.all(
    [
      Stream.runForEach(cluster.deployments.changes, (key) => onDeployment(context, key)),
      Stream.runForEach(cluster.unmapped.changes, context.enqueueApplied),
      forEachName(cluster.jobs, (name) => onJob(context, name)),
      forEachName(cluster.budgets, makeOnBudget(context)),
      forEachName(cluster.pods, onPod),
      forEachName(cluster.nodes, onNode),
      Stream.runForEach(cluster.otherPods, () => onOtherPods),
      forEachName(cluster.hostClasses, makeOnClass(context))
    ],
    { concurrency: "unbounded", discard: true }
  )
}
