import { classOrder, type DeploymentId, hostClassProblem, servingProblem } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { fromKey } from "@seatrial/kube"
import { AppliedResources, type Binding, Runs } from "@seatrial/store"
import { Clock, Duration, Effect, Option, Result } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import type { UnmappedDeployment } from "../gather/watchUnmapped.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { customResource } from "../objects/customResource.ts"
import { classVerdict, openClasses } from "../resources/classVerdict.ts"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"
import { finalizer } from "../resources/objectNames.ts"
import { brokenSentence } from "../resources/Rule.ts"
import { modelDeploymentRules, scalingRules } from "../resources/rules.ts"
import { readSpec, type WatchedDeployment } from "../resources/WatchedDeployment.ts"
import { Applied, type AppliedRefusal, decideApplied, type ObservedApplied } from "./decideApplied.ts"
import { type DesiredSpec, desiredSpecHash, toDesiredSpec } from "./desiredSpec.ts"
import { fieldPath } from "./fieldNames.ts"
import { isDefinitionDeleted } from "./isDefinitionDeleted.ts"
import { notAdopted } from "./notAdopted.ts"
import { refuse } from "./refuse.ts"
import { replicasToRecord, toScalingRequest } from "./replicasToRecord.ts"
import { setFinalizer } from "./setFinalizer.ts"

/** After a write conflict. */
const soon = Option.some(Duration.seconds(1))
/** While the deletion of an object cannot be recorded. */
const retry = Option.some(Duration.seconds(5))
/** A refusal may become obsolete without a change of the object: after a purchase, or once a name is free again. */
const later = Option.some(Duration.seconds(60))
/**
 * From the first attempt to record a deletion until the object is released without a record, milliseconds. Time without
 * a leading operator does not count, as for other deadlines.
 */
const recordPatience = 60_000

export interface AppliedContext {
  readonly cluster: Cluster
  readonly settings: OperatorSettings
  /**
   * When the operator first failed to record the deletion of an object, by `namespace/name`, Unix milliseconds. Kept
   * only in memory: after a restart the time starts again.
   */
  readonly unrecorded: Map<string, number>
  /** Requests a pass over a run. */
  readonly enqueue: (id: DeploymentId) => Effect.Effect<void>
}

/** The version of an object that a run is bound to. */
const versionOf = ({ name, namespace }: AppliedKey, { metadata: { generation = 1, uid = "" } }: WatchedDeployment) => ({ namespace, name, uid, generation })

/** Records the deletion of an object. False if it could not be recorded. */
const recordDeletion = Effect.fnUntraced(function* (name: string, namespace: string) {
  const applied = yield* AppliedResources
  return yield* applied.retire({ namespace, name }).pipe(
    Effect.timeout("10 seconds"),
    Effect.as(true),
    Effect.sandbox,
    Effect.catch((cause) => Effect.as(Effect.logWarning(`the deletion of the ModelDeployment ${name} could not be recorded`, cause), false))
  )
})

/**
 * Records the deletion, then releases the object. If the record fails for a minute, the object is released anyway, and
 * the run's record creates it again. An object that is deleted with its definition is released without a record: its
 * model serves on, and the object is created again once the definition exists.
 */
const retire = Effect.fnUntraced(function* ({ unrecorded }: AppliedContext, resource: WatchedDeployment, namespace: string) {
  const { finalizers = [], name } = resource.metadata
  const key = `${namespace}/${name}`
  if (!finalizers.includes(finalizer)) return Option.none<Duration.Duration>()
  if (yield* isDefinitionDeleted) {
    yield* Effect.logWarning(`the ModelDeployment ${key} is deleted with its definition; its model is not retired`)
    return (yield* setFinalizer(resource, false)) ? Option.none() : soon
  }
  const now = yield* Clock.currentTimeMillis
  const since = Math.min(unrecorded.get(key) ?? now, now)
  const recorded = yield* recordDeletion(name, namespace)
  if (recorded) unrecorded.delete(key)
  else unrecorded.set(key, since)
  if (!recorded && (yield* Clock.currentTimeMillis) < since + recordPatience) return retry
  return (yield* setFinalizer(resource, false)) ? Option.none() : soon
})

/**
 * Releases an object in a namespace that no longer has an organization, once its deletion is recorded. An object of a
 * run that Postgres does not contain belongs to another installation.
 */
const releaseUnmapped = Effect.fnUntraced(function* (resource: UnmappedDeployment, { name, namespace }: AppliedKey) {
  if (!(yield* isDefinitionDeleted)) {
    const { deploymentId } = resource.status ?? {}
    if (deploymentId !== undefined && Option.isNone(yield* (yield* Runs).observe(deploymentId))) return Option.none<Duration.Duration>()
    if (!(yield* recordDeletion(name, namespace))) return retry
  }
  yield* Effect.logInfo(`removed the finalizer of the ModelDeployment ${namespace}/${name}: its namespace no longer belongs to an organization`)
  return (yield* setFinalizer(resource, false)) ? Option.none() : soon
})

/** The problem of the specification: by the rules of the definition, or on this cluster. */
const problemOf = Effect.fnUntraced(function* (cluster: Cluster, resource: ModelDeployment, { serving }: DesiredSpec) {
  const broken = brokenSentence(modelDeploymentRules, resource)
  if (broken !== null) return broken
  const objects = yield* cluster.hostClasses.list()
  const classNames = classOrder(serving) ?? []
  const closed = objects.find((object) => classNames.includes(object.metadata.name) && !classVerdict(object).accepted)
  if (closed !== undefined) return `Models cannot be deployed on the host class ${closed.metadata.name}. ${classVerdict(closed).message}`
  const classes = openClasses(objects).map(({ hostClass }) => hostClass)
  const problem = hostClassProblem(serving, classes) ?? servingProblem(serving, classes, engines)
  return problem === null ? null : `${fieldPath(problem.param, resource.spec.serving?.hostClasses !== undefined)}: ${problem.message}`
})

/**
 * Hash of the specification of an object. An object that was lost and created again from its run's record states
 * settings that its original specification left to the model. They do not count as a change.
 */
const hashOfDesiredSpec = Effect.fnUntraced(function* ({ metadata, spec }: ModelDeployment, binding: Binding | null, namespace: string) {
  const hash = desiredSpecHash(toDesiredSpec(spec))
  if (binding === null || binding.uid === metadata.uid || binding.specHash === hash) return hash
  const run = yield* (yield* Runs).observe(binding.deploymentId)
  const again = Option.map(run, (bound) => desiredSpecHash(toDesiredSpec(customResource(bound, namespace).spec)))
  return Option.contains(again, hash) ? binding.specHash : hash
})

/** The organization of the namespace, by the operator's settings; null if there is none. */
const organizationOf = ({ namespace: own, organization, organizations }: OperatorSettings, namespace: string): string | null =>
  namespace === own ? organization : (organizations.get(namespace) ?? null)

/** An applied object, or its place. */
interface AppliedKey {
  readonly name: string
  readonly namespace: string
}

/** The specification of an object, its hash, and its problem. */
const observeSpec = Effect.fnUntraced(function* (cluster: Cluster, resource: WatchedDeployment, binding: Binding | null, namespace: string) {
  const read = readSpec(resource)
  if (Result.isFailure(read)) return { ...noSpec, unreadable: read.failure }
  const readable = { ...resource, spec: read.success }
  return {
    spec: read.success,
    unreadable: null,
    specHash: yield* hashOfDesiredSpec(readable, binding, namespace),
    problem: yield* problemOf(cluster, readable, toDesiredSpec(read.success)),
    scalingProblem: brokenSentence(scalingRules, readable)
  }
})
const noSpec = { spec: null, unreadable: null, specHash: "", problem: null, scalingProblem: null }

const observeApplied = Effect.fnUntraced(function* ({ cluster, settings }: AppliedContext, key: AppliedKey, resource: WatchedDeployment | null) {
  const applied = yield* AppliedResources
  const { namespace } = key
  const organization = organizationOf(settings, namespace)
  const binding = Option.getOrNull(yield* applied.find(key))
  const { generation = 1, uid = "" } = resource?.metadata ?? {}
  // Most passes find an object that has its run already. They need not query the organization.
  const isNew = organization !== null && (binding?.uid !== uid || binding.generation !== generation)
  const observed: ObservedApplied = {
    namespace,
    resource,
    organization,
    owner: isNew ? Option.getOrNull(yield* applied.owner(organization)) : null,
    binding,
    ...(resource === null ? noSpec : yield* observeSpec(cluster, resource, binding, namespace)),
    requireFirstPurchase: settings.requireFirstPurchase
  }
  return observed
})

const keep = Effect.fnUntraced(function* (resource: WatchedDeployment) {
  return (yield* setFinalizer(resource, true)) ? Option.none<Duration.Duration>() : soon
})

const showRefusal = Effect.fnUntraced(function* (resource: WatchedDeployment, { message, reason }: AppliedRefusal) {
  return (yield* refuse(resource, reason, message)) ? later : soon
})

/** Creates the run of a specification, or records why the store does not. */
const adopt = Effect.fnUntraced(function* (context: AppliedContext, key: AppliedKey, resource: ModelDeployment, organization: string) {
  const applied = yield* AppliedResources
  const owner = yield* applied.owner(organization)
  if (Option.isNone(owner)) return soon
  // First, so that the deletion of a bound object is never missed.
  if (!(yield* setFinalizer(resource, true))) return soon
  const version = versionOf(key, resource)
  const desiredSpec = toDesiredSpec(resource.spec)
  const adoption = yield* Effect.result(applied.adopt({ orgId: owner.value.orgId, resource: version, specHash: desiredSpecHash(desiredSpec), ...desiredSpec }))
  if (Result.isFailure(adoption)) {
    const current = Option.getOrElse(yield* context.cluster.deployments.get(key.name, key.namespace), (): WatchedDeployment => resource)
    return yield* showRefusal(current, notAdopted(adoption.failure, resource, organization))
  }
  const scaling = toScalingRequest(resource.spec)
  if (scaling !== null) yield* applied.scale(key, scaling)
  yield* Effect.logInfo(`the ModelDeployment ${key.namespace}/${key.name} at generation ${version.generation} became deployment ${adoption.success}`)
  yield* context.enqueue(adoption.success)
  return Option.none<Duration.Duration>()
})

/** Applies the decision about an object. */
const applyDecision = (context: AppliedContext, key: AppliedKey, { organization, spec, specHash }: ObservedApplied, resource: WatchedDeployment) => {
  const enqueueRun = (run: DeploymentId | null) => (run === null ? Effect.void : context.enqueue(run))
  return Applied.$match({
    Retire: () => retire(context, resource, key.namespace),
    Pass: ({ run }) => Effect.as(enqueueRun(run), Option.none<Duration.Duration>()),
    Keep: ({ run }) => Effect.andThen(enqueueRun(run), keep(resource)),
    Rebind: ({ run }) =>
      AppliedResources.pipe(
        Effect.flatMap((applied) => applied.rebind(versionOf(key, resource), specHash)),
        Effect.andThen(enqueueRun(run)),
        Effect.andThen(keep(resource))
      ),
    Refuse: (refusal) => Effect.andThen(enqueueRun(refusal.run), showRefusal(resource, refusal)),
    Adopt: () => (organization === null || spec === null ? Effect.succeed(soon) : adopt(context, key, { ...resource, spec }, organization))
  })
}

/**
 * One pass over an applied object (`key`: `namespace/name`), or over its place if it is gone. Returns the delay until
 * the next pass, if time alone may change the result.
 */
export const reconcileApplied = Effect.fn("reconcileApplied")(function* (context: AppliedContext, key: string) {
  const { cluster, unrecorded } = context
  const { name, namespace = cluster.namespace } = fromKey(key)
  const unmapped = Option.getOrNull(cluster.unmapped.get(key))
  if (unmapped !== null) return yield* releaseUnmapped(unmapped, { name, namespace })
  const resource = Option.getOrNull(yield* cluster.deployments.get(name, namespace))
  // Before the first query to Postgres, which may be unavailable.
  if (resource !== null && resource.metadata.deletionTimestamp !== undefined) return yield* retire(context, resource, namespace)
  unrecorded.delete(`${namespace}/${name}`)
  const place = { name, namespace }
  const observed = yield* observeApplied(context, place, resource)
  const replicas = replicasToRecord(observed)
  if (replicas !== undefined) yield* (yield* AppliedResources).scale(place, replicas)
  if (resource !== null) return yield* applyDecision(context, place, observed, resource)(decideApplied(observed))
  if (observed.binding !== null) yield* context.enqueue(observed.binding.deploymentId)
  return Option.none<Duration.Duration>()
})
