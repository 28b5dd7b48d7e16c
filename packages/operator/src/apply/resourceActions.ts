import { KubeClient, type KubeError } from "@seatrial/kube"
import { type Run, Runs } from "@seatrial/store"
import { Clock, Effect, Option } from "effect"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { customResource } from "../objects/customResource.ts"
import { eventName } from "../resources/objectNames.ts"
import { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { ActionContext, ActionOf } from "./ActionContext.ts"
import { ignoreNotFound } from "./ignoreNotFound.ts"
import { recordEvent } from "./recordEvent.ts"
import { aboutResource } from "./transitionEvents.ts"

/**
 * Whether the run is still bound to the applied object that it was read with. A deletion is recorded before the object
 * goes, so an operator that misses the object finds the record.
 */
const isBoundToObject = Effect.fnUntraced(function* ({ applied, id }: Run) {
  const runs = yield* Runs
  const now = Option.getOrNull(yield* runs.observe(id))
  return now !== null && !now.modelDeleted && now.applied?.current?.uid === applied?.current?.uid
})

/** Another object of that name is handled by the next pass. */
const unlessTaken = <R>(making: Effect.Effect<WatchedDeployment, KubeError, R>) =>
  Effect.catchIf(
    making,
    ({ reason }) => reason === "Conflict",
    () => Effect.succeed(null)
  )

/** Whether the operator may create the run's object: the namespace of an applied one must have an organization. */
const isMapped = ({ applied }: Run, { namespace, organizations }: OperatorSettings): boolean =>
  applied === null || applied.namespace === namespace || organizations.has(applied.namespace)

/**
 * The custom resource of a run. An applied object is never overwritten: if another object of its name exists, the next
 * pass handles it. An object that was deleted after the run was read is not created again, because it would count as a
 * new request.
 */
const createResource = Effect.fnUntraced(function* (run: Run, settings: OperatorSettings) {
  if (!isMapped(run, settings)) return null
  const kube = yield* KubeClient
  const object = customResource(run, settings.namespace)
  if (run.applied === null) return yield* kube.apply(WatchedDeployment, object)
  return (yield* isBoundToObject(run)) ? yield* unlessTaken(kube.create(WatchedDeployment, object)) : null
})

export const ensureResource = Effect.fnUntraced(function* ({ applying, gathered: { run } }: ActionContext) {
  const resource = yield* createResource(run, applying.settings)
  // The watch event of the new object needs no pass.
  if (resource !== null) applying.statusWrites.set(run.id, { at: Number.NEGATIVE_INFINITY, version: resource.metadata.resourceVersion })
  return { resource }
})

export const removeResource = Effect.fnUntraced(function* ({ applying, current: { resource } }: ActionContext) {
  if (resource === null) return
  const kube = yield* KubeClient
  const { name, namespace = applying.settings.namespace, uid } = resource.metadata
  yield* ignoreNotFound(kube.remove(WatchedDeployment, name, namespace, uid === undefined ? {} : { uid }))
})

/** Records a warning as an event and in the log. */
export const recordWarning = Effect.fnUntraced(function* (
  { current: { resource }, gathered: { run } }: ActionContext,
  { about, message, reason }: ActionOf<"RecordEvent">
) {
  if (resource !== null) {
    const name = eventName(run.id, reason, about)
    const event = aboutResource(resource, { name, type: "Warning", action: "Verify", reason, message, at: yield* Clock.currentTimeMillis })
    // The actions that follow concern the engine and do not wait for a server that cannot store events.
    yield* Effect.catch(recordEvent(event), (error) => Effect.logWarning(`the event ${reason} of ${run.id} could not be recorded: ${error.message}`))
  }
  yield* Effect.logWarning(`${run.id}: ${message}`)
})
