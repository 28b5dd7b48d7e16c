import { type DeploymentId, type Phase, phaseTraits } from "@seatrial/domain"
import { fromKey, WorkQueue } from "@seatrial/kube"
import { type AlarmedEngine, Decisions, HostClasses, isOutage, Runs, Sentinels } from "@seatrial/store"
import { Effect, Option, Stream } from "effect"
import { type AppliedContext, reconcileApplied } from "./applied/reconcileApplied.ts"
import { makeEngineOwner } from "./apply/engineOwner.ts"
import { keepClassStatus } from "./classes/keepClassStatus.ts"
import { followLoads } from "./followLoads.ts"
import { keepAlarm } from "./gather/BootVerdicts.ts"
import { type Cluster, watchCluster } from "./gather/Cluster.ts"
import { trackUptime } from "./gather/LeaderUptime.ts"
import { keepHolds } from "./gpu/keepHolds.ts"
import { keepReferences } from "./keepReferences.ts"
import type { OperatorSettings } from "./OperatorSettings.ts"
import type { Reconciler } from "./pass/Reconciler.ts"
import { makeRunMemory, type RunMemory } from "./RunMemory.ts"
import { reconcile } from "./reconcile.ts"
import { readBuild } from "./record/readBuild.ts"
import { classVerdict, openClasses } from "./resources/classVerdict.ts"
import { makeSentinelKeeper } from "./sentinel/SentinelKeeper.ts"
import { startCounters } from "./startCounters.ts"
import { enqueueChanged, enqueueLive, followCluster } from "./triggers.ts"
import { sendAlarms } from "./webhook/sendAlarms.ts"
import type { StartWork } from "./work/startWork.ts"

/**
 * Longer than any pass: each of its requests has a shorter timeout. A pass that takes longer is faulty and blocks its
 * run.
 */
const passTimeout = "5 minutes"

/** Excludes runs without a first pass, and runs that wait for GPUs. */
const isUnderWay = (phase: Phase | undefined) => phase !== undefined && !phaseTraits[phase].awaitsGpus

/** Records in Postgres the host classes on which models can be deployed. */
const updateHostClasses = Effect.fnUntraced(function* (cluster: Cluster) {
  const hostClasses = yield* HostClasses
  const objects = yield* cluster.hostClasses.list()
  for (const object of objects) {
    const { accepted, message } = classVerdict(object)
    if (!accepted) yield* Effect.logWarning(`nothing is deployed on the host class ${object.metadata.name}: ${message}`)
  }
  yield* hostClasses.replaceAll(openClasses(objects).map(({ hostClass }) => hostClass))
  return Option.none()
})

/** The queue of passes over host classes. Its first pass is requested. */
const makeClassQueue = Effect.fnUntraced(function* (cluster: Cluster) {
  const queue = yield* WorkQueue.make({ name: "host-classes", concurrency: 1, passTimeout, work: (_: "all") => updateHostClasses(cluster) })
  yield* queue.add("all")
  return queue
})

/** The queue of passes over applied objects. */
const makeAppliedQueue = (context: AppliedContext) =>
  WorkQueue.make({
    name: "applied",
    concurrency: 8,
    passTimeout,
    groupOf: (key: string) => fromKey(key).namespace ?? "",
    work: (key: string) => reconcileApplied(context, key)
  })

/**
 * Drives every run until the scope closes. A pass runs whenever the run's row, custom resource, pods or Job change,
 * when something that it waits for changes, and at the time that its last decision requested. Never ends by itself.
 * Fails if a watch is denied or a kind does not exist.
 */
export const control = Effect.fnUntraced(function* (settings: OperatorSettings, start: StartWork) {
  yield* startCounters
  const runs = yield* Runs
  const cluster = yield* watchCluster(settings.namespace, [...settings.organizations.keys()], settings.countAllPods)
  const holds = yield* keepHolds(cluster)
  const enqueueRun = (id: DeploymentId): Effect.Effect<void> => queue.add(id)
  const recording = { decisions: yield* Decisions, build: readBuild(), keepDays: settings.keepDecisionDays }
  const sendNew = yield* sendAlarms(settings.webhook)
  const onAlarm = (id: DeploymentId, engine: AlarmedEngine) => {
    keepAlarm(memory.bootVerdicts, engine)
    return Effect.andThen(sendNew, enqueueRun(id))
  }
  const sentinels = yield* makeSentinelKeeper({ seconds: settings.sentinelSeconds, share: settings.sentinelShare, alpha: settings.sentinelAlpha, onAlarm })
  const scheduling = { enqueue: enqueueRun, isScheduled: (id: DeploymentId) => queue.isScheduled(id) }
  const references = yield* keepReferences(cluster, () => memory.references)
  const users = { ledger: cluster.referenceJobs, limits: settings.referenceLimits, enqueueJob: references.add }
  const memory: RunMemory = yield* makeRunMemory({ ...scheduling, ledger: cluster.ledger, recording, sentinels, references: users })
  for (const engine of yield* (yield* Sentinels).alarmed) keepAlarm(memory.bootVerdicts, engine)
  const reconciler: Reconciler = {
    cluster,
    memory,
    usedUpSince: new Map(),
    recordHold: holds.record,
    engineOwner: makeEngineOwner(settings.namespace),
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
    isUrgent: (id) => isUnderWay(memory.phases.of(id)),
    groupOf: (id) => memory.organizations.get(id) ?? "",
    work: (id: DeploymentId) =>
      reconcile(reconciler, id).pipe(
        Effect.onError((cause) => (isOutage(cause) ? Effect.void : memory.references.failed(id))),
        Effect.annotateLogs({ deployment: id })
      )
  })

  const classes = yield* makeClassQueue(cluster)
  const applied = yield* makeAppliedQueue({ cluster, settings, unrecorded: new Map(), enqueue: enqueueRun })
  const triggers = {
    cluster,
    memory,
    liveRuns: runs.live,
    enqueueRun,
    enqueueApplied: applied.add,
    enqueueHold: holds.enqueue,
    enqueueReference: references.add,
    enqueueClasses: classes.add("all"),
    enqueueClassStatus: yield* keepClassStatus(cluster)
  }

  yield* Effect.logInfo(`the operator manages namespace ${settings.namespace}`)
  const loads = followLoads({ modelLoads: runs.modelLoads, loads: memory.loads, gauges: memory.scaling, enqueueRun })
  return yield* Effect.all([Stream.runForEach(runs.changes, (run) => enqueueChanged(triggers, run)), followCluster(triggers), enqueueLive(triggers), loads], {
    concurrency: "unbounded",
    discard: true
  }).pipe(Effect.andThen(Effect.never))
})
