import type { FailureCode, NamedFailure, Phase } from "@seatrial/domain"
import type { Endpoint, ServingPlan } from "@seatrial/store"
import { Data } from "effect"
import type { WorkKind } from "./Observation.ts"

type None = Record<never, never>

/** One write. Each can be repeated without harm. */
export type Action = Data.TaggedEnum<{
  EnsureResource: None
  /** The custom resource of a run whose model was deleted. */
  RemoveResource: None
  EnsureFetch: None
  /** The download Job and the Secret with its token. */
  RemoveFetch: None
  /** The run's weights are whole in their store, as its download found. */
  NoteWeights: None
  /** They may not be there any more. */
  ForgetWeights: None
  EnsurePod: None
  /** Who drains a node may not take the engine. */
  EnsureBudget: None
  RemoveBudget: None
  /** What the run's containers said last goes into our own log: they are removed once the run has failed with `code`, and their logs with them. */
  KeepLog: { readonly code: string }
  /** `uid`: only that one. `force`: without waiting for its node, which is gone. */
  RemovePod: { readonly uid: string | null; readonly force: boolean }
  /** What went wrong with the run may be the fault of its engine's node, which is avoided from now on. */
  NoteNodeFault: { readonly code: string }
  /** From now on the run's revision has this image and no other, by its digest (`sha256:...`) where its node tells it. */
  RecordEngineImage: { readonly image: string; readonly digest: string | null }
  /** The endpoints of the run's revision from now on. */
  Publish: { readonly endpoints: ReadonlyArray<Endpoint> }
  /** `replaces`: from now on what the model served so far gives its GPUs to the run. `plan`: the host class that the run leaves the queue on, of several that its request allows. */
  Enter: { readonly to: Phase; readonly reason: string; readonly failure: NamedFailure | null; readonly replaces: boolean; readonly plan?: ServingPlan }
  Activate: None
  /** A warning about the run in the cluster's events, told once of each `about`. */
  Tell: { readonly reason: string; readonly about: string; readonly message: string }
  /** The cluster holds nothing of the run any more. */
  Release: None
}>
export const Action = Data.taggedEnum<Action>()

/** What is to be done now, in this order; then `work` and nothing else may run in the background, and `lookAgainAt` is when time alone may change the answer. */
export interface Decision {
  readonly actions: ReadonlyArray<Action>
  readonly work: WorkKind | null
  /** What the run does or waits for, for the cluster's own people. */
  readonly message: string
  /** The same for callers of the API, if `message` repeats what the cluster says of its nodes, pods, volumes and quotas. */
  readonly publicMessage?: string
  /** Unix milliseconds. */
  readonly lookAgainAt: number | null
}

/** Nothing to do but to wait for what `message` says, at the latest until `lookAgainAt`. */
export const wait = (message: string, lookAgainAt: number | null = null, publicMessage?: string): Decision => ({
  actions: [],
  work: null,
  message,
  ...(publicMessage === undefined ? {} : { publicMessage }),
  lookAgainAt
})

export const act = (message: string, ...actions: ReadonlyArray<Action>): Decision => ({ actions, work: null, message, lookAgainAt: null })

export const enter = (to: Phase, reason: string, ...before: ReadonlyArray<Action>): Decision =>
  act(reason, ...before, Action.Enter({ to, reason, failure: null, replaces: false }))

export const fail = (code: FailureCode, text: string): Decision =>
  act(`${code}: ${text}`, Action.KeepLog({ code }), Action.Enter({ to: "failed", reason: code, failure: { code, text }, replaces: false }))
