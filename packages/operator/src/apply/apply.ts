import type { KubeError } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect } from "effect"
import { Action } from "../decide/Decision.ts"
import type { Gathered } from "../gather/gather.ts"
import type { Refusal } from "../observation/Refusal.ts"
import { enginePodName, fetchJobName, objectName } from "../resources/objectNames.ts"
import type { ActionContext, Applied, Applying } from "./ActionContext.ts"
import { ensureFetch, forgetWeights, noteWeights, removeFetch } from "./downloadActions.ts"
import { ensureBudget, ensurePod, keepEngineLog, noteNodeFault, removeBudget, removePod } from "./engineActions.ts"
import { keepReference } from "./referenceActions.ts"
import { ensureResource, recordWarning, removeResource } from "./resourceActions.ts"
import { activate, enter, moveBack, publish, recordEngineImage, release, setReplicas } from "./runActions.ts"

/** Performs an action that changes neither the custom resource nor the run. */
const unchanged = <E, R>(effect: Effect.Effect<unknown, E, R>) => Effect.map(effect, (): Partial<Applied> => ({}))

/** Performs one action. Returns what it changed. */
const perform = (context: ActionContext, action: Action) =>
  Action.$match(action, {
    EnsureResource: () => ensureResource(context),
    RemoveResource: () => unchanged(removeResource(context)),
    EnsureFetch: () => unchanged(ensureFetch(context)),
    RemoveFetch: () => unchanged(removeFetch(context)),
    NoteWeights: () => unchanged(noteWeights(context)),
    ForgetWeights: () => unchanged(forgetWeights(context)),
    KeepReference: (ended) => unchanged(keepReference(context, ended)),
    EnsurePod: (creation) => unchanged(ensurePod(context, creation)),
    EnsureBudget: () => unchanged(ensureBudget(context)),
    RemoveBudget: () => unchanged(removeBudget(context)),
    KeepLog: (keepLog) => unchanged(keepEngineLog(context, keepLog)),
    RemovePod: (removal) => unchanged(removePod(context, removal)),
    NoteNodeFault: (fault) => noteNodeFault(context, fault),
    RecordEngineImage: (image) => recordEngineImage(context, image),
    Publish: (publication) => publish(context, publication),
    Enter: (transition) => enter(context, transition),
    Activate: () => activate(context),
    RecordEvent: (warning) => unchanged(recordWarning(context, warning)),
    SetReplicas: (step) => setReplicas(context, step),
    MoveBack: (move) => moveBack(context, move),
    Release: () => unchanged(release(context))
  })

/** The actions that create an object. */
const creating: ReadonlySet<Action["_tag"]> = new Set(["EnsurePod", "EnsureFetch", "EnsureResource", "EnsureBudget"])

/**
 * Errors that repeat until someone changes something in the cluster. If an admission webhook does not answer, the API
 * server reports an internal error or a timeout for each object that is created, or does not answer in time.
 */
const isRefused =
  ({ _tag }: Action) =>
  ({ reason, statusReason }: KubeError): boolean =>
    reason === "Invalid" ||
    reason === "Denied" ||
    reason === "NotFound" ||
    ((statusReason === "InternalError" || statusReason === "Timeout") && creating.has(_tag))

/** The object of an action that the API server refused. */
const refusedObject = (run: Run, action: Action): Pick<Refusal, "kind" | "object"> => {
  switch (action._tag) {
    case "EnsurePod":
      // The model serves without an engine above the first.
      return { kind: (action.ordinal ?? 0) === 0 ? "pod" : "optional", object: `Pod/${enginePodName(run.engineRun, action.ordinal)}` }
    case "EnsureFetch":
      return { kind: "download", object: `Job/${fetchJobName(run.id)}` }
    case "EnsureBudget":
      return { kind: "optional", object: `PodDisruptionBudget/${objectName(run.id)}` }
    case "EnsureResource":
      return { kind: "optional", object: `ModelDeployment/${run.applied?.name ?? objectName(run.id)}` }
    default:
      return { kind: "other", object: `ModelDeployment/${run.applied?.name ?? objectName(run.id)}` }
  }
}

/** Why the API server refused the object of an action. */
export interface RefusedAction extends Omit<Refusal, "since"> {}

const refusalOf = (run: Run, action: Action, { message, reason, statusReason = "" }: KubeError): RefusedAction => ({
  ...refusedObject(run, action),
  reason: statusReason === "" ? reason : statusReason,
  message
})

/**
 * Performs the actions in order. Every write is idempotent: names follow from the run, and transitions are
 * compare-and-set. Returns the custom resource and the run as they are afterward; the run is null if it must be read
 * again. If the API server refuses an object, the actions after it are not performed, except if the run goes on without
 * it.
 */
export const applyActions = Effect.fn("applyActions")(function* (applying: Applying, gathered: Gathered, actions: ReadonlyArray<Action>) {
  let current: Applied = { resource: gathered.resource, run: gathered.run }
  let refused: RefusedAction | null = null
  for (const action of actions) {
    const change: Partial<Applied> | RefusedAction = yield* perform({ applying, gathered, current }, action).pipe(
      Effect.catchIf(isRefused(action), (error) => Effect.succeed(refusalOf(gathered.run, action, error)))
    )
    if (!("message" in change)) current = { ...current, ...change }
    else if (change.kind === "optional") refused ??= change
    else return { resource: gathered.resource, run: null, refused: change }
  }
  return { ...current, refused }
})
