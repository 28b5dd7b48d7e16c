import { failureDetail } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { Job, KubeClient, type KubeError, type OwnerReference, Pod, Secret } from "@seatrial/kube"
import { type Run, type RunRevision, Runs } from "@seatrial/store"
import { Effect, Option, Redacted } from "effect"
import type { Action } from "../decide/Decision.ts"
import type { Gathered } from "../gather/gather.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { enginePodName, fetchJobName, hubSecretName, objectName } from "../resources/objectNames.ts"
import { customResource } from "./customResource.ts"
import { enginePod } from "./engineObjects.ts"
import { fetchJob, hubSecret } from "./fetchObjects.ts"
import { keepLog } from "./keepLog.ts"

const ownerOf = (resource: ModelDeployment): OwnerReference => ({
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "ModelDeployment",
  name: resource.metadata.name,
  uid: resource.metadata.uid ?? "",
  controller: true
})

const missing = (run: Run, what: string) => Effect.die(new Error(`${run.id} in ${run.phase} has no ${what}`))

interface Owned {
  readonly run: Run
  readonly revision: RunRevision
  readonly owner: OwnerReference
}

/** Deletes; an object that is another one by now, or is gone, is as good. */
const removed = (effect: Effect.Effect<void, KubeError>) =>
  Effect.catchIf(
    effect,
    (error) => error.reason === "Conflict" || error.reason === "NotFound",
    () => Effect.void
  )

/** Writes what was decided, in order. Every write can be repeated: names follow from the run, and transitions are compare-and-set. */
export const applyActions = Effect.fn("applyActions")(function* (gathered: Gathered, actions: ReadonlyArray<Action>, settings: OperatorSettings) {
  const kube = yield* KubeClient
  const runs = yield* Runs
  const { namespace } = settings
  const { podClass, run } = gathered
  const { engineRun, id, orgId, phase } = run
  const weightsClaim = podClass?.weightsClaim ?? settings.weightsClaim
  let { resource } = gathered

  const owned = Effect.suspend((): Effect.Effect<Owned> => {
    if (run.revision === null) return missing(run, "revision")
    return resource === null ? missing(run, "custom resource") : Effect.succeed({ run, revision: run.revision, owner: ownerOf(resource) })
  })

  for (const action of actions) {
    switch (action._tag) {
      case "EnsureResource":
        resource = yield* kube.apply(ModelDeployment, customResource(run, namespace))
        break
      case "RemoveResource":
        yield* removed(kube.remove(ModelDeployment, objectName(id), namespace))
        break
      case "EnsureFetch": {
        const input = { ...(yield* owned), settings, weightsClaim }
        const token = yield* runs.hubToken(orgId, run.startedBy)
        if (Option.isSome(token)) yield* kube.apply(Secret, hubSecret(input, Redacted.value(token.value)))
        yield* kube.apply(Job, fetchJob(input, Option.isSome(token)))
        break
      }
      case "RemoveFetch":
        yield* removed(kube.remove(Secret, hubSecretName(id), namespace))
        yield* removed(kube.remove(Job, fetchJobName(id), namespace, { propagation: "Background" }))
        break
      case "EnsurePod": {
        const { revision } = run
        if (revision === null) return yield* missing(run, "revision")
        const engine = engineFor(revision.settings.runtime)
        if (podClass === null || engine === undefined) return yield* missing(run, podClass === null ? "host class" : "engine")
        yield* kube.apply(Pod, enginePod({ run: { ...run, id: engineRun }, revision, podClass, engine, namespace, weightsClaim }))
        break
      }
      case "KeepLog":
        yield* keepLog(gathered, action.code, namespace)
        break
      case "RemovePod":
        yield* removed(
          kube.remove(Pod, enginePodName(engineRun), namespace, {
            ...(action.uid === null ? {} : { uid: action.uid }),
            ...(action.force ? { gracePeriodSeconds: 0 } : {})
          })
        )
        break
      case "Publish":
        yield* runs.publishEndpoints(id, orgId, action.endpoints)
        break
      case "Enter":
        if (
          yield* runs.enter({ id, orgId, from: phase, to: action.to, reason: action.reason, ...(action.failure === null ? {} : { failure: action.failure }) })
        ) {
          yield* Effect.logInfo(`${id}: ${phase} -> ${action.to}: ${action.failure === null ? action.reason : failureDetail(action.failure)}`)
        }
        break
      case "Activate":
        if (yield* runs.activate({ id, orgId, from: phase })) yield* Effect.logInfo(`${id}: ${phase} -> activated`)
        break
      case "Release":
        yield* runs.release(id, orgId)
        break
    }
  }
})
