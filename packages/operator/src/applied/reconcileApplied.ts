import { classOrder, type DeploymentId, hostClassProblem, servingProblem } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { fromKey, KubeClient, type KubeError } from "@seatrial/kube"
import { AppliedResources, type Binding, Runs } from "@seatrial/store"
import { Clock, Duration, Effect, Option, Result } from "effect"
import { customResource } from "../apply/customResource.ts"
import type { Cluster } from "../gather/Cluster.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { toPodClass } from "../resources/HostClassResource.ts"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { brokenRule, modelDeploymentRules } from "../resources/rules.ts"
import { decideApplied, finalizer } from "./decideApplied.ts"
import { fieldPath, inFieldNames } from "./inFieldNames.ts"
import { notAdopted } from "./notAdopted.ts"
import { refuse } from "./refuse.ts"
import { type Wish, wishHash, wishOf } from "./wish.ts"

/** After a write that met a newer version of the object. */
const soon = Option.some(Duration.seconds(1))
/** While the deletion of an object cannot be recorded. */
const retry = Option.some(Duration.seconds(5))
/** A refusal may have become wrong without a change of the object: a purchase, a name that is free again. */
const later = Option.some(Duration.seconds(60))
/** From the first try to record a deletion until its object goes unrecorded, milliseconds. Time in which no operator could try counts as little as for other deadlines. */
const recordPatience = 60_000

const isStale = (error: KubeError) => error.reason === "Conflict" || error.reason === "NotFound"

export interface AppliedContext {
  readonly cluster: Cluster
  readonly settings: OperatorSettings
  /** Since when this operator has tried in vain to record the deletions of objects, by `namespace/name`, Unix milliseconds; only a memory. */
  readonly unrecorded: Map<string, number>
  /** Asks for a pass over a run. */
  readonly look: (id: DeploymentId) => Effect.Effect<void>
}

const setFinalizer = Effect.fnUntraced(function* ({ metadata }: ModelDeployment, wanted: boolean) {
  const { finalizers = [], name, namespace, resourceVersion } = metadata
  if (finalizers.includes(finalizer) === wanted) return true
  const kube = yield* KubeClient
  const next = wanted ? [...finalizers, finalizer] : finalizers.filter((one) => one !== finalizer)
  const patch = { metadata: { finalizers: next, ...(resourceVersion === undefined ? {} : { resourceVersion }) } }
  return yield* kube.mergePatch(ModelDeployment, name, namespace, patch).pipe(
    Effect.as(true),
    Effect.catchIf(isStale, () => Effect.succeed(false))
  )
})

/** Records the deletion, then lets the object go. Where that could not be recorded for a minute it goes unrecorded, and comes back with the record. */
const retire = Effect.fnUntraced(function* ({ unrecorded }: AppliedContext, resource: ModelDeployment, namespace: string) {
  const { finalizers = [], name } = resource.metadata
  const key = `${namespace}/${name}`
  if (!finalizers.includes(finalizer)) return Option.none<Duration.Duration>()
  const applied = yield* AppliedResources
  const now = yield* Clock.currentTimeMillis
  const since = Math.min(unrecorded.get(key) ?? now, now)
  const recorded = yield* applied.retire({ namespace, name }).pipe(
    Effect.timeout("10 seconds"),
    Effect.as(true),
    Effect.sandbox,
    Effect.catch((cause) => Effect.as(Effect.logWarning(`the deletion of the ModelDeployment ${name} could not be recorded`, cause), false))
  )
  if (recorded) unrecorded.delete(key)
  else unrecorded.set(key, since)
  if (!recorded && (yield* Clock.currentTimeMillis) < since + recordPatience) return retry
  return (yield* setFinalizer(resource, false)) ? Option.none() : soon
})

/** What is wrong with the specification, by the definition's own rules and by what this cluster has. */
const problemOf = Effect.fnUntraced(function* (cluster: Cluster, resource: ModelDeployment, { serving }: Wish) {
  const broken = brokenRule(modelDeploymentRules, resource)
  if (broken !== null) return `${broken}.`
  const podClasses = (yield* cluster.hostClasses.list()).flatMap((object) => Option.toArray(toPodClass(object)))
  const wide = podClasses.find(({ hostClass, nodes }) => nodes > 1 && classOrder(serving)?.includes(hostClass.name) === true)
  if (wide !== undefined) {
    return `Engines of the host class ${wide.hostClass.name} span ${wide.nodes} nodes, which is planned and not available yet: choose one with nodes: 1.`
  }
  const classes = podClasses.flatMap(({ hostClass, nodes }) => (nodes === 1 ? [hostClass] : []))
  const problem = hostClassProblem(serving, classes) ?? servingProblem(serving, classes, engines)
  return problem === null ? null : `${fieldPath(problem.param)}: ${inFieldNames(problem.message)}`
})

/**
 * Hash of the wish that an object stands for. One that was lost and made again from its run's record says what its specification had left to the model that it names, and
 * asks for nothing else by that.
 */
const hashOfWish = Effect.fnUntraced(function* ({ metadata, spec }: ModelDeployment, binding: Binding | null, namespace: string) {
  const hash = wishHash(wishOf(spec))
  if (binding === null || binding.uid === metadata.uid || binding.specHash === hash) return hash
  const run = yield* (yield* Runs).observe(binding.deploymentId)
  const again = Option.map(run, (found) => wishHash(wishOf(customResource(found, namespace).spec)))
  return Option.contains(again, hash) ? binding.specHash : hash
})

/** One pass over an object that somebody applied (`key`: `namespace/name`), or over its place where it is gone. When to look again, if time alone may change the answer. */
export const reconcileApplied = Effect.fn("reconcileApplied")(function* (context: AppliedContext, key: string) {
  const { cluster, look, settings, unrecorded } = context
  const applied = yield* AppliedResources
  const { name, namespace = cluster.namespace } = fromKey(key)
  const resource = Option.getOrNull(yield* cluster.deployments.get(name, namespace))
  // Before anything is asked of Postgres, which may be away.
  if (resource !== null && resource.metadata.deletionTimestamp !== undefined) return yield* retire(context, resource, namespace)
  unrecorded.delete(`${namespace}/${name}`)
  const { requireFirstPurchase } = settings
  const organization = namespace === settings.namespace ? settings.organization : (settings.organizations.get(namespace) ?? null)
  const wish = resource === null ? null : wishOf(resource.spec)
  const binding = Option.getOrNull(yield* applied.find({ namespace, name }))
  const specHash = resource === null ? "" : yield* hashOfWish(resource, binding, namespace)
  const { generation = 1, uid = "" } = resource?.metadata ?? {}
  // Most passes find an object that has its run already: then nobody has to be asked whose it is.
  const asked = organization !== null && (binding?.uid !== uid || binding.generation !== generation)
  const decision = decideApplied({
    namespace,
    resource,
    organization,
    owner: asked ? Option.getOrNull(yield* applied.owner(organization)) : null,
    binding,
    specHash,
    problem: resource === null || wish === null ? null : yield* problemOf(cluster, resource, wish),
    requireFirstPurchase
  })
  const lookAt = (run: DeploymentId | null) => (run === null ? Effect.void : look(run))
  if (resource === null || wish === null) {
    if (decision._tag === "Look") yield* lookAt(decision.run)
    return Option.none<Duration.Duration>()
  }
  const version = { namespace, name, uid, generation }
  switch (decision._tag) {
    case "Retire":
      return yield* retire(context, resource, namespace)
    case "Look":
      yield* lookAt(decision.run)
      return Option.none()
    case "Keep":
      yield* look(decision.run)
      return (yield* setFinalizer(resource, true)) ? Option.none() : soon
    case "Rebind":
      yield* applied.rebind(version, specHash)
      yield* look(decision.run)
      return (yield* setFinalizer(resource, true)) ? Option.none() : soon
    case "Refuse":
      yield* lookAt(decision.run)
      return (yield* refuse(resource, decision.reason, decision.message)) ? later : soon
    case "Adopt": {
      const owner = organization === null ? Option.none() : yield* applied.owner(organization)
      if (Option.isNone(owner)) return soon
      // First, so that none that stands for a model can go unnoticed.
      if (!(yield* setFinalizer(resource, true))) return soon
      const made = yield* Effect.result(applied.adopt({ orgId: owner.value.orgId, resource: version, specHash: wishHash(wish), ...wish }))
      if (Result.isFailure(made)) {
        const { message, reason } = notAdopted(made.failure, resource, organization ?? "")
        const current = Option.getOrElse(yield* cluster.deployments.get(name, namespace), () => resource)
        return (yield* refuse(current, reason, message)) ? later : soon
      }
      yield* Effect.logInfo(`the ModelDeployment ${namespace}/${name} in generation ${generation} is ${made.success}`)
      yield* look(made.success)
      return Option.none()
    }
  }
})
