import { type DeploymentId, isFinished, type Phase, phaseTraits } from "@seatrial/domain"
import type { KubeObject } from "@seatrial/kube"
import { fromKey, type Reflector, WorkQueue } from "@seatrial/kube"
import { HostClasses, Runs } from "@seatrial/store"
import { Effect, Option, Stream } from "effect"
import { reconcileApplied } from "./applied/reconcileApplied.ts"
import { keepClassStatus } from "./classes/keepClassStatus.ts"
import { byNode, watchCluster } from "./gather/Cluster.ts"
import { makeCapacityChanges } from "./gather/capacityChanges.ts"
import { trackUptime } from "./gather/LeaderUptime.ts"
import { keepHolds } from "./gpu/keepHolds.ts"
import type { OperatorSettings } from "./OperatorSettings.ts"
import type { Reconciler } from "./pass/Reconciler.ts"
import { makeRunMemory } from "./RunMemory.ts"
import { reconcile } from "./reconcile.ts"
import { deploymentOf, deploymentOfName, deploymentOfResource } from "./resources/objectNames.ts"
import { toPodClass } from "./resources/PodClass.ts"
import type { StartWork } from "./work/startWork.ts"

/**
 * Longer than any pass: each of its requests has a shorter timeout. A pass that takes longer is faulty and blocks its
 * run.
 */
const passTimeout = "5 minutes"

/** Excludes runs without a first pass, and runs that wait for GPUs. */
const isUnderWay = (phase: Phase | undefined) => phase !== undefined && !phaseTraits[phase].awaitsGpus

/**
 * Drives every run until the scope closes. A pass runs whenever the run's row, custom resource, pods or Job change,
 * when something that it waits for changes, and at the time that its last decision requested. Never ends by itself.
 * Fails if a watch is denied or a kind does not exist.
 */
export const control = Effect.fnUntraced(function* (settings: OperatorSettings, start: StartWork) {
  const runs = yield* Runs
  const hostClasses = yield* HostClasses
  const cluster = yield* watchCluster(settings.namespace, [...settings.organizations.keys()])
  const holds = yield* keepHolds(cluster)
  const enqueueRun = (id: DeploymentId): Effect.Effect<void> => queue.add(id)
  const memory = yield* makeRunMemory({ enqueue: enqueueRun, isScheduled: (id) => queue.isScheduled(id), ledger: cluster.ledger })
  const { budgetExpectations, followers, phases, podExpectations, pool, shown } = memory
  const reconciler: Reconciler = {
    cluster,
    memory,
    usedUpSince: new Map(),
    recordHold: holds.record,
    uptime: yield* trackUptime(runs.ping),
    settings,
    start,
    enqueue: enqueueRun,
    backlog: () => queue.backlog()
  }
  const queue: WorkQueue<DeploymentId> = yield* WorkQueue.make({
    name: "runs",
    concurrency: settings.concurrency,
    passTimeout,
    // Serving runs and runs in progress. Few are in progress at once, and each briefly, so a change is shown at once
    // with all its effects.
    isUrgent: (id) => isUnderWay(phases.of(id)),
    work: (id: DeploymentId) => Effect.annotateLogs(reconcile(reconciler, id), { deployment: id })
  })

  const updateHostClasses = Effect.gen(function* () {
    const objects = yield* cluster.hostClasses.list()
    const classes = objects.flatMap((object) => Option.toArray(toPodClass(object)))
    for (const { hostClass, nodes } of classes) {
      if (nodes > 1)
        yield* Effect.logWarning(`nothing is deployed on host class ${hostClass.name}: its engines span ${nodes} nodes, which no engine supports yet`)
    }
    yield* hostClasses.replaceAll(classes.flatMap(({ hostClass, nodes }) => (nodes === 1 ? [hostClass] : [])))
    return Option.none()
  })
  const classQueue = yield* WorkQueue.make({ name: "host-classes", concurrency: 1, passTimeout, work: (_: "all") => updateHostClasses })
  yield* classQueue.add("all")

  // Applied objects are named after their models.
  const context = { cluster, settings, unrecorded: new Map<string, number>(), enqueue: (id: DeploymentId) => queue.add(id) }
  const applied = yield* WorkQueue.make({ name: "applied", concurrency: 8, passTimeout, work: (key: string) => reconcileApplied(context, key) })
  const onDeployment = Effect.fnUntraced(function* (key: string) {
    yield* enqueueClasses
    const { name, namespace } = fromKey(key)
    const run = namespace === settings.namespace ? deploymentOfResource(name) : Option.none()
    if (Option.isNone(run)) return yield* applied.add(key)
    const object = Option.getOrUndefined(yield* cluster.deployments.get(name, settings.namespace))
    // The operator's own status write needs no pass, except if it shows the end of the run: then the run can be
    // released.
    const own = shown.get(run.value)?.version
    const phase = object?.status?.phase
    const ended = phase !== undefined && phase !== "refused" && isFinished(phase)
    if (own === undefined || own !== object?.metadata.resourceVersion || ended) yield* queue.add(run.value)
  })

  const enqueueClasses = yield* keepClassStatus(cluster)
  const specs = new Map<string, string>()
  /** The operator's own status write needs no pass. */
  const onClass = Effect.fnUntraced(function* (name: string) {
    yield* enqueueClasses
    const object = Option.getOrUndefined(yield* cluster.hostClasses.get(name))
    const before = specs.get(name)
    const now = object === undefined ? undefined : JSON.stringify(object.spec)
    if (now === undefined) specs.delete(name)
    else specs.set(name, now)
    if (now === undefined || now !== before) yield* Effect.andThen(classQueue.add("all"), enqueueLive)
  })

  const enqueue = (id: Option.Option<DeploymentId>) => (Option.isSome(id) ? queue.add(id.value) : Effect.void)
  const enqueueAll = (ids: ReadonlyArray<DeploymentId>) => Effect.forEach(ids, queue.add, { discard: true })
  const enqueueLive = Effect.flatMap(runs.live, enqueueAll)
  const onChange = <A extends KubeObject, E>(reflector: Reflector<A>, enqueue: (name: string) => Effect.Effect<void, E>) =>
    Stream.runForEach(reflector.changes, (key) => enqueue(fromKey(key).name))
  const byName = (name: string) => enqueue(deploymentOfName(name))
  const budgets = new Set<string>()
  /** Only the existence of a budget matters, not its status. */
  const onBudget = Effect.fnUntraced(function* (name: string) {
    const run = deploymentOfName(name)
    const exists = Option.isSome(yield* cluster.budgets.get(name, settings.namespace))
    const own = Option.isSome(run) && budgetExpectations.delete(run.value)
    if (exists === budgets.has(name)) return
    if (exists) budgets.add(name)
    else budgets.delete(name)
    if (!exists || !own) yield* enqueue(run)
  })
  /** Includes the runs that serve with its engine. */
  const enqueueEngine = (id: Option.Option<DeploymentId>) => (Option.isSome(id) ? enqueueAll([id.value, ...followers.of(id.value)]) : Effect.void)
  const capacity = makeCapacityChanges()
  const enqueueQueued = Effect.suspend(() => enqueueAll(pool.queued()))
  const onPod = Effect.fnUntraced(function* (name: string) {
    const pod = Option.getOrUndefined(yield* cluster.pods.get(name, settings.namespace))
    const own = podExpectations.get(name)
    // The operator knows the state of a pod that it has just created.
    if (own === undefined || own !== pod?.metadata.resourceVersion) {
      podExpectations.delete(name)
      yield* enqueueEngine(deploymentOfName(name))
    }
    yield* holds.enqueue(name)
    yield* enqueueClasses
    if (capacity.ofPod(name, pod)) yield* enqueueQueued
  })
  const onNode = Effect.fnUntraced(function* (name: string) {
    if (!capacity.ofNode(name, Option.getOrUndefined(yield* cluster.nodes.get(name)))) return
    yield* enqueueClasses
    yield* enqueueQueued
    for (const { metadata } of yield* cluster.pods.listBy(byNode, name))
      yield* Effect.andThen(enqueueEngine(deploymentOf(metadata.labels)), holds.enqueue(metadata.name))
  })

  yield* Effect.logInfo(`the operator manages namespace ${settings.namespace}`)
  return yield* Effect.all(
    [
      Stream.runForEach(runs.changes, queue.add),
      Stream.runForEach(cluster.deployments.changes, onDeployment),
      onChange(cluster.jobs, byName),
      onChange(cluster.budgets, onBudget),
      onChange(cluster.pods, onPod),
      onChange(cluster.nodes, onNode),
      onChange(cluster.hostClasses, onClass),
      enqueueLive
    ],
    { concurrency: "unbounded", discard: true }
  ).pipe(Effect.andThen(Effect.never))
})
