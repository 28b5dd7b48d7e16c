import { optionalNullable, sortedJson } from "@seatrial/domain"
import { defineResource, fromKey, KubeClient, type KubeError, objectSchema, Reflector, toKey, WorkQueue } from "@seatrial/kube"
import { Clock, Duration, Effect, Layer, Option, Schema, Stream } from "effect"
import { type Attempt, decideJob, type JobSeen, type JobStatus } from "./decideJob.ts"
import { seconds } from "./kubeTime.ts"
import { BoundPod, uidOf } from "./PodObject.ts"
import { PodFailureRule, podFailure } from "./podFailure.ts"

const optional = Schema.optionalKey
const Labels = Schema.Record(Schema.String, Schema.String)
const Amount = optionalNullable(Schema.Number)

/** The spec of the pod is passed on unchanged. */
const Job = defineResource({
  group: "batch",
  version: "v1",
  plural: "jobs",
  kind: "Job",
  namespaced: true,
  schema: objectSchema({
    spec: Schema.Struct({
      completions: Amount,
      parallelism: Amount,
      backoffLimit: Amount,
      activeDeadlineSeconds: Amount,
      ttlSecondsAfterFinished: Amount,
      suspend: optionalNullable(Schema.Boolean),
      podFailurePolicy: optionalNullable(Schema.Struct({ rules: Schema.Array(PodFailureRule) })),
      template: Schema.Struct({ metadata: optional(Schema.Struct({ labels: optional(Labels), annotations: optional(Labels) })), spec: Schema.Unknown })
    }),
    status: optional(
      Schema.Struct({
        active: optional(Schema.Number),
        succeeded: optional(Schema.Number),
        failed: optional(Schema.Number),
        startTime: optional(Schema.String),
        completionTime: optional(Schema.String),
        conditions: optional(
          Schema.Array(
            Schema.Struct({
              type: Schema.String,
              status: Schema.String,
              reason: optional(Schema.String),
              message: optional(Schema.String),
              lastTransitionTime: optionalNullable(Schema.String)
            })
          )
        )
      })
    )
  })
})
type Job = (typeof Job.schema)["Type"]

const PodToMake = defineResource({
  group: "",
  version: "v1",
  plural: "pods",
  kind: "Pod",
  namespaced: true,
  schema: objectSchema({ spec: Schema.Unknown })
})

const ownedBy = (pod: BoundPod, uid: string | undefined) => uid !== undefined && (pod.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid)

const millis = (text: string | null | undefined) => (text === undefined || text === null ? undefined : Date.parse(text))

const attemptOf = (job: Job, pod: BoundPod): Attempt => {
  const statuses = pod.status?.containerStatuses ?? []
  const finishedAt = Math.max(0, ...statuses.map(({ state }) => millis(state?.terminated?.finishedAt) ?? 0))
  return {
    name: pod.metadata.name,
    phase: pod.status?.phase ?? "Pending",
    deleting: pod.metadata.deletionTimestamp !== undefined,
    restarts: statuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
    ...(finishedAt > 0 ? { finishedAt } : {}),
    ...podFailure(job.spec.podFailurePolicy?.rules ?? [], pod)
  }
}

const seenOf = (job: Job, pods: ReadonlyArray<BoundPod>): JobSeen => {
  const { spec, status } = job
  const startedAt = millis(status?.startTime)
  const { activeDeadlineSeconds: deadline, ttlSecondsAfterFinished: ttl } = spec
  return {
    name: job.metadata.name,
    uid: job.metadata.uid ?? "",
    completions: spec.completions ?? 1,
    parallelism: spec.parallelism ?? 1,
    backoffLimit: spec.backoffLimit ?? 6,
    ...(deadline === undefined || deadline === null ? {} : { activeDeadline: deadline * 1_000 }),
    ...(ttl === undefined || ttl === null ? {} : { ttl: ttl * 1_000 }),
    suspended: spec.suspend === true,
    ...(startedAt === undefined ? {} : { startedAt }),
    conditions: status?.conditions ?? [],
    attempts: pods.map((pod) => attemptOf(job, pod))
  }
}

const statusJson = (job: Job, status: JobStatus, now: number) => ({
  ...(status.active === 0 ? {} : { active: status.active }),
  ...(status.succeeded === 0 ? {} : { succeeded: status.succeeded }),
  ...(status.failed === 0 ? {} : { failed: status.failed }),
  ...(status.startedAt === undefined ? {} : { startTime: seconds(status.startedAt) }),
  ...(status.completedAt === undefined ? {} : { completionTime: seconds(status.completedAt) }),
  ...(status.conditions.length === 0
    ? {}
    : {
        conditions: status.conditions.map((condition) => {
          const before = job.status?.conditions?.find(({ type, status }) => type === condition.type && status === "True")
          return { ...condition, status: "True", lastTransitionTime: before?.lastTransitionTime ?? seconds(now) }
        })
      })
})

const podOf = (job: Job, name: string) => {
  const uid = job.metadata.uid ?? ""
  const { metadata, spec } = job.spec.template
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: job.metadata.namespace ?? "default",
      labels: {
        ...metadata?.labels,
        "job-name": job.metadata.name,
        "batch.kubernetes.io/job-name": job.metadata.name,
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid
      },
      ...(metadata?.annotations === undefined ? {} : { annotations: metadata.annotations }),
      ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name: job.metadata.name, uid, controller: true, blockOwnerDeletion: true }]
    },
    spec
  }
}

const expire = (kube: KubeClient["Service"], { metadata: { name, namespace, uid } }: Job) =>
  kube.remove(Job, name, namespace, { propagation: "Background", ...(uid === undefined ? {} : { uid }) })

const createPod = (kube: KubeClient["Service"], job: Job, name: string) =>
  kube.create(PodToMake, podOf(job, name)).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "Conflict",
      // An earlier pass created it, but the watch has not delivered it yet.
      () => Effect.void
    )
  )

const writeStatus = Effect.fnUntraced(function* (kube: KubeClient["Service"], job: Job, decided: JobStatus, now: number) {
  const status = statusJson(job, decided, now)
  if (sortedJson(status) === sortedJson(job.status ?? {})) return
  const { name, namespace, resourceVersion } = job.metadata
  const version = resourceVersion === undefined ? {} : { resourceVersion }
  const object = { apiVersion: "batch/v1", kind: "Job", metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...version }, status }
  yield* kube.applyStatus(Job, object).pipe(
    Effect.catchIf(
      // The object changed after the last write. The watch delivers the new version.
      ({ reason }) => reason === "NotFound" || reason === "Conflict",
      () => Effect.void
    )
  )
})

/** Carries out what the rules decide about a job. Returns when the next pass is due. */
const reconcileJob = Effect.fnUntraced(function* (kube: KubeClient["Service"], job: Job, pods: ReadonlyArray<BoundPod>) {
  const now = yield* Clock.currentTimeMillis
  const decision = decideJob(seenOf(job, pods), now)
  if (decision.expire) {
    yield* expire(kube, job)
    return Option.none()
  }
  for (const pod of pods.filter(({ metadata }) => decision.remove.includes(metadata.name))) {
    yield* kube.remove(BoundPod, pod.metadata.name, job.metadata.namespace, { uid: uidOf(pod) })
  }
  for (const name of decision.create) yield* createPod(kube, job, name)
  if (decision.status !== undefined) yield* writeStatus(kube, job, decision.status, now)
  return Option.map(Option.fromUndefinedOr(decision.again), Duration.millis)
})

const jobLabel = "batch.kubernetes.io/job-name"

/** The keys of the jobs whose pods change. A deleted pod no longer shows its job, which must be reconciled as well. */
const ownerChanges = (pods: Reflector<BoundPod>) => {
  const jobOf = new Map<string, string>()
  return pods.changes.pipe(
    Stream.mapEffect(
      Effect.fnUntraced(function* (key: string) {
        const { name, namespace } = fromKey(key)
        const job = Option.getOrUndefined(yield* pods.get(name, namespace))?.metadata.labels?.[jobLabel]
        const known = jobOf.get(key)
        if (job === undefined) jobOf.delete(key)
        else jobOf.set(key, toKey(job, namespace))
        return job === undefined ? known : toKey(job, namespace)
      })
    ),
    Stream.filter((key) => key !== undefined)
  )
}

const make = Effect.gen(function* () {
  const kube = yield* KubeClient
  const jobs = yield* Reflector.make(Job, {})
  const pods = yield* Reflector.make(BoundPod, {}, { indexLabels: [jobLabel] })
  yield* jobs.synced
  yield* pods.synced

  const reconcile = Effect.fn("JobController.reconcile")(function* (key: string): Effect.fn.Return<Option.Option<Duration.Duration>, KubeError> {
    const wanted = fromKey(key)
    const job = Option.getOrUndefined(yield* jobs.get(wanted.name, wanted.namespace))
    if (job === undefined || job.metadata.deletionTimestamp !== undefined) return Option.none()
    const own = (yield* pods.listByLabel(jobLabel, wanted.name)).filter((pod) => ownedBy(pod, job.metadata.uid))
    return yield* reconcileJob(kube, job, own)
  })

  const queue = yield* WorkQueue.make({ concurrency: 4, work: reconcile })
  yield* Stream.merge(jobs.changes, ownerChanges(pods)).pipe(
    Stream.runForEach(queue.add),
    Effect.tapError((error) => Effect.logError(`The job controller cannot watch: ${error.message}`)),
    Effect.forkScoped
  )
})

/** Creates the pods of `batch/v1` Jobs and maintains the status of the Jobs. For clusters without a job controller. */
export const JobController = { layer: Layer.effectDiscard(make) }
