import { failureDetail, fallsBack, isFinished, isUnplaced, type Phase } from "@seatrial/domain"
import { Job, KubeClient, KubeError, type OwnerReference, Pod, PodDisruptionBudget, Secret } from "@seatrial/kube"
import { type Endpoint, type Run, type RunRevision, Runs } from "@seatrial/store"
import { Clock, Effect, Option, Redacted } from "effect"
import type { Action } from "../decide/Decision.ts"
import type { Gathered, GatherFrom } from "../gather/gather.ts"
import { weightsStore } from "../gather/observeWeights.ts"
import type { HoldKeeper } from "../gpu/keepHolds.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { customResource } from "../objects/customResource.ts"
import { disruptionBudget } from "../objects/engineObjects.ts"
import { fetchJob, hubSecret } from "../objects/fetchObjects.ts"
import { wantedPod } from "../objects/wantedPod.ts"
import { annotateCopiesInUse } from "../objects/weightsCopy.ts"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { deploymentLabel, enginePodName, eventName, fetchJobName, hubSecretName, objectName } from "../resources/objectNames.ts"
import { weightsManifest } from "../resources/weightFiles.ts"
import { avoidedNodes } from "./avoidedNodes.ts"
import { keepLog } from "./keepLog.ts"
import type { Shown } from "./patchStatus.ts"
import { putSecret } from "./putSecret.ts"
import { recordEvent } from "./recordEvent.ts"
import { removeEngine } from "./removeEngine.ts"
import { traceTransition } from "./traceTransition.ts"
import { aboutResource } from "./transitionEvents.ts"

const ownerOf = (resource: ModelDeployment): OwnerReference => ({
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "ModelDeployment",
  name: resource.metadata.name,
  uid: resource.metadata.uid ?? "",
  controller: true
})

const missing = (run: Run, what: string) => Effect.die(new Error(`${run.id} in ${run.phase} has no ${what}`))

/** The run after such a transition, as Postgres now stores it; null if the transition has further effects. */
const entered = (run: Run, to: Phase, reason: string, at: number): Run | null => {
  if (isFinished(to) || fallsBack(run.phase, to)) return null
  const phaseSince = Math.max(run.phaseSince, at)
  // A run that gets its GPUs keeps its host class.
  const placements = isUnplaced(to) ? run.placements : []
  return { ...run, phase: to, phaseSince, placements, history: [...run.history, { phase: to, at: phaseSince, reason }] }
}

/** The run with these endpoints. Endpoints that stay keep their reachability. */
const published = (run: Run, endpoints: ReadonlyArray<Endpoint>): Run => ({
  ...run,
  endpoints: endpoints.map(({ pod, url }) => ({
    url,
    pod,
    reachable: run.endpoints.some((known) => known.url === url && known.pod === pod && known.reachable)
  }))
})

interface Owned {
  readonly run: Run
  readonly revision: RunRevision
  readonly owner: OwnerReference | null
}

/** The object already exists. A concurrent change of a quota is a conflict too, but then nothing was created. */
const alreadyExists = (error: KubeError) => error.statusReason === "AlreadyExists"

/** Creates an object that never changes. Succeeds if it already exists. */
const ignoreAlreadyExists = (effect: Effect.Effect<unknown, KubeError>) => Effect.catchIf(effect, alreadyExists, () => Effect.void)

/** Deletes an object. Succeeds if it is gone or was replaced. */
const ignoreNotFound = <R>(effect: Effect.Effect<void, KubeError, R>) =>
  Effect.catchIf(
    effect,
    (error) => error.reason === "Conflict" || error.reason === "NotFound",
    () => Effect.void
  )

/**
 * Whether the run is still bound to the applied object that it was read with. A deletion is recorded before the object
 * goes, so an operator that misses the object finds the record.
 */
const isBoundToObject = Effect.fnUntraced(function* ({ applied, id }: Run) {
  const runs = yield* Runs
  const now = Option.getOrNull(yield* runs.observe(id))
  return now !== null && !now.modelDeleted && now.applied?.current?.uid === applied?.current?.uid
})

/** The run continues without the object: a quota may refuse it, or its namespace may be gone or forbidden. */
const unlessRefused = <R>({ id }: Run, making: Effect.Effect<ModelDeployment, KubeError, R>) =>
  Effect.catchIf(
    making,
    (error) => error.reason !== "Retryable",
    (error) =>
      Effect.as(error.reason === "Conflict" ? Effect.void : Effect.logWarning(`the ModelDeployment of ${id} cannot be created again: ${error.message}`), null)
  )

/**
 * The custom resource of a run. An applied object is never overwritten: if another object of its name exists, the next
 * pass handles it. An object that was deleted after the run was read is not created again, because it would count as a
 * new request.
 */
const ensureResource = Effect.fnUntraced(function* (run: Run, namespace: string) {
  const kube = yield* KubeClient
  const object = customResource(run, namespace)
  if (run.applied !== null) return (yield* isBoundToObject(run)) ? yield* unlessRefused(run, kube.create(ModelDeployment, object)) : null
  const making = kube.apply(ModelDeployment, object)
  return yield* run.phase === "activated" ? unlessRefused(run, making) : making
})

/** See `applyActions`. */
interface Applied {
  readonly resource: ModelDeployment | null
  readonly run: Run | null
}

interface Applying extends Pick<GatherFrom, "cluster">, Pick<GatherFrom["memory"], "budgetExpectations" | "podExpectations"> {
  readonly settings: OperatorSettings
  readonly shown: Shown
  readonly recordHold: HoldKeeper["record"]
}

/**
 * Performs the actions in order. Every write is idempotent: names follow from the run, and transitions are
 * compare-and-set. Returns the custom resource and the run as they are afterward; the run is null if it must be read
 * again.
 */
export const applyActions = Effect.fn("applyActions")(function* (applying: Applying, gathered: Gathered, actions: ReadonlyArray<Action>) {
  const kube = yield* KubeClient
  const runs = yield* Runs
  const { cluster, budgetExpectations, podExpectations, settings, shown } = applying
  const { namespace } = settings
  let after: Run | null = gathered.run
  const { podClass, run } = gathered
  const { engineRun, id, orgId, phase } = run
  const weightsClaim = podClass?.weightsClaim ?? settings.weightsClaim
  let { resource } = gathered

  const owned = Effect.suspend((): Effect.Effect<Owned> => {
    if (run.revision === null) return missing(run, "revision")
    // Without an owner in its namespace, the object is deleted by the operator alone.
    const owner = resource === null ? null : ownerOf(resource)
    return Effect.succeed({ run, revision: run.revision, owner: resource?.metadata.namespace === namespace ? owner : null })
  })

  /**
   * A pod of that name that does not belong to the run counts as missing, and no pass can resolve that. The operator
   * records an event, and tries again until someone deletes the pod.
   */
  const notOurs = Effect.fnUntraced(function* (name: string, error: KubeError) {
    const existing = yield* cluster.pods.get(name, namespace)
    if (Option.isNone(existing) || existing.value.metadata.labels?.[deploymentLabel] === engineRun) return yield* error
    return yield* new KubeError({ reason: "Invalid", message: `A pod ${name} that does not belong to Seatrial already exists. Delete it.` })
  })

  for (const action of actions) {
    switch (action._tag) {
      case "EnsureResource":
        resource = yield* ensureResource(run, namespace)
        // The watch event of the new object needs no pass.
        if (resource !== null) shown.set(id, { at: Number.NEGATIVE_INFINITY, version: resource.metadata.resourceVersion })
        break
      case "RemoveResource":
        if (resource !== null) {
          const { name, namespace: within, uid } = resource.metadata
          yield* ignoreNotFound(kube.remove(ModelDeployment, name, within ?? namespace, uid === undefined ? {} : { uid }))
        }
        break
      case "EnsureFetch": {
        const input = { ...(yield* owned), settings, weightsClaim }
        const token = yield* runs.hubToken(orgId, run.startedBy)
        if (Option.isSome(token)) yield* putSecret(hubSecret(input, Redacted.value(token.value)))
        yield* kube.apply(Job, fetchJob(input, Option.isSome(token)))
        break
      }
      case "RemoveFetch":
        yield* ignoreNotFound(kube.remove(Secret, hubSecretName(id), namespace))
        yield* ignoreNotFound(kube.remove(Job, fetchJobName(id), namespace, { propagation: "Background" }))
        break
      case "NoteWeights": {
        const { revision } = yield* owned
        yield* runs.noteWeights(id, orgId, { store: weightsStore(podClass, settings), manifest: weightsManifest(revision) })
        break
      }
      case "ForgetWeights":
        yield* runs.forgetWeights(id, orgId, weightsStore(podClass, settings))
        break
      case "EnsurePod": {
        const avoid = yield* avoidedNodes(cluster, run)
        const pod = wantedPod(run, podClass, settings, { merged: gathered.merged, avoid })
        if (pod === null) return yield* missing(run, "revision, host class or engine")
        yield* kube.create(Pod, annotateCopiesInUse(pod, gathered.copiesInUse)).pipe(
          Effect.map(({ metadata }) => podExpectations.set(metadata.name, metadata.resourceVersion)),
          // The object was created before and no watch has shown it yet. If it exists and this operator did not create
          // it, the next pass handles it.
          Effect.catchIf(
            (error) => alreadyExists(error) && podExpectations.has(pod.metadata.name),
            () => Effect.void
          ),
          Effect.catchIf(alreadyExists, (error) => notOurs(pod.metadata.name, error))
        )
        break
      }
      case "EnsureBudget":
        yield* ignoreAlreadyExists(kube.create(PodDisruptionBudget, disruptionBudget(run, namespace)))
        budgetExpectations.set(id, yield* Clock.currentTimeMillis)
        break
      case "RemoveBudget":
        budgetExpectations.delete(id)
        yield* ignoreNotFound(kube.remove(PodDisruptionBudget, objectName(id), namespace))
        break
      case "KeepLog":
        yield* keepLog(gathered, action.code, namespace)
        break
      case "RemovePod":
        yield* ignoreNotFound(removeEngine(applying, { name: enginePodName(engineRun), namespace, uid: action.uid, force: action.force }))
        break
      case "NoteNodeFault":
        if (gathered.node !== undefined) yield* runs.noteNodeFault(engineRun, orgId, { node: gathered.node.metadata.name, code: action.code })
        after = null
        break
      case "RecordEngineImage":
        if (!(yield* runs.recordEngineImage(id, orgId, { image: action.image, digest: action.digest }))) after = null
        else if (after !== null && after.revision !== null)
          after = { ...after, revision: { ...after.revision, engineImage: action.image, engineDigest: action.digest } }
        break
      case "Tell":
        if (resource !== null) {
          const name = eventName(id, action.reason, action.about)
          const { message, reason } = action
          const event = aboutResource(resource, { name, type: "Warning", reason, message, at: yield* Clock.currentTimeMillis })
          // The actions that follow concern the engine and do not wait for a server that cannot store events.
          yield* Effect.catch(recordEvent(event), (error) => Effect.logWarning(`the event ${reason} of ${id} could not be recorded: ${error.message}`))
        }
        yield* Effect.logWarning(`${id}: ${action.message}`)
        break
      case "Publish":
        after = (yield* runs.publishEndpoints(id, orgId, action.endpoints)) && after !== null ? published(after, action.endpoints) : null
        break
      case "Enter": {
        const { failure, plan, reason, replaces, to } = action
        const at = yield* Clock.currentTimeMillis
        const moved = yield* runs.enter({
          id,
          orgId,
          from: phase,
          to,
          reason,
          at,
          replaces,
          ...(failure === null ? {} : { failure }),
          ...(plan === undefined ? {} : { plan })
        })
        after = moved && after !== null && !replaces && plan === undefined ? entered(after, to, reason, at) : null
        if (!moved) break
        yield* traceTransition(run, to, failure)
        yield* Effect.logInfo(`${id}: ${phase} -> ${to}: ${failure === null ? reason : failureDetail(failure)}`)
        break
      }
      case "Activate":
        after = null
        if (yield* runs.activate({ id, orgId, from: phase })) {
          yield* traceTransition(run, "activated", null)
          yield* Effect.logInfo(`${id}: ${phase} -> activated`)
        }
        break
      case "Release":
        // If the custom resource shows another run, nothing shows whether a Secret is left.
        if (run.applied !== null) yield* ignoreNotFound(kube.remove(Secret, hubSecretName(id), namespace))
        yield* runs.release(id, orgId)
        break
    }
  }
  const done: Applied = { resource, run: after }
  return done
})
