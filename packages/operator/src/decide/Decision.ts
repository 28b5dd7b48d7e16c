import type { EngineCapacity, FailureCode, NamedFailure, Phase, RevisionId } from "@seatrial/domain"
import type { Endpoint, ServingPlan } from "@seatrial/store"
import { Data } from "effect"
import type { Work, WorkKind } from "../observation/work.ts"
import type { DesiredReplicas } from "./desiredReplicas.ts"

type None = Record<never, never>

/** One write. Every action is idempotent. */
export type Action = Data.TaggedEnum<{
  EnsureResource: None
  /** Deletes the custom resource of a run whose model was deleted. */
  RemoveResource: None
  EnsureFetch: None
  /** Deletes the download Job and the Secret that holds its token. */
  RemoveFetch: None
  /** Records that the store holds the run's complete, verified weights. */
  NoteWeights: None
  /** Records that the store may have lost the run's weights. */
  ForgetWeights: None
  /** Stores the result of the Job that computed the reference of the commit, and deletes the Job. See `ObservedReference`. */
  KeepReference: { readonly pod: string | null; readonly code: string | null }
  /** Creates the pod of an engine. `ordinal`, here and below: which engine of the revision; absent: the first. */
  EnsurePod: { readonly ordinal?: number }
  /** Creates the disruption budget, or corrects it, so that a node drain does not evict the engine. */
  EnsureBudget: None
  RemoveBudget: None
  /**
   * Copies the last output of the run's containers into the operator's log. Once the run has failed with `code`, its
   * containers are deleted and their logs are lost.
   */
  KeepLog: { readonly code: string }
  /** `uid`: delete the pod only if it has this uid. `force`: do not wait for the node, which is gone. */
  RemovePod: { readonly uid: string | null; readonly force: boolean; readonly ordinal?: number }
  /** The engine's node may have caused the failure. Later starts avoid it. */
  NoteNodeFault: { readonly code: string; readonly ordinal?: number }
  /** Pins the run's revision to this image, and to its digest (`sha256:...`) if the node reports one. */
  RecordEngineImage: { readonly image: string; readonly digest: string | null }
  /** Replaces the endpoints of the run's revision. */
  Publish: { readonly endpoints: ReadonlyArray<Endpoint> }
  /**
   * `replaces`: the serving revision gives its GPUs to the run. `plan`: the host class that the run takes when it
   * leaves the queue, if its request allows several. `hadNoGpus`: the run returns to the queue from an attempt in which
   * its pod never had a node, so that it lost nothing.
   */
  Enter: {
    readonly to: Phase
    readonly reason: string
    readonly failure: NamedFailure | null
    readonly replaces: boolean
    readonly plan?: ServingPlan
    readonly hadNoGpus?: true
  }
  Activate: None
  /** Records a warning about the run as a Kubernetes event, once for each `about`. */
  RecordEvent: { readonly reason: string; readonly about: string; readonly message: string }
  /** Sets the number of engines of the model by its load. */
  SetReplicas: {
    readonly from: number
    readonly replicas: number
    readonly reason: DesiredReplicas["reason"]
    readonly requests: number
    readonly peak: number
    readonly capacity: EngineCapacity
  }
  /** Makes an earlier revision of the model the serving one again. */
  MoveBack: { readonly to: RevisionId; readonly reason: string }
  /** The cluster holds no objects of the run anymore. */
  Release: None
}>
export const Action = Data.taggedEnum<Action>()

/**
 * The result of a decision. The actions run in order. After them, only `work` may run in the background. If
 * only time can change the decision, `requeueAt` says when to decide again.
 */
export interface Decision {
  readonly actions: ReadonlyArray<Action>
  readonly work: WorkKind | null
  /** The ordinals of the engines with which `work` runs, once with each; absent: with the first. */
  readonly engines?: ReadonlyArray<number>
  /** What the run does or waits for, as shown to the cluster administrator. */
  readonly message: string
  /**
   * The message for API callers. Set if `message` quotes what the cluster reports about its nodes, pods, volumes or
   * quotas.
   */
  readonly publicMessage?: string
  /** Unix milliseconds. */
  readonly requeueAt: number | null
  /**
   * The rule that decided: its names from the outside inward, for example `queued.freeGpus`. Absent inside of a rule.
   */
  readonly rule?: string
}

/** A decision with the name of its rule. */
export interface NamedDecision extends Decision {
  readonly rule: string
}

/** The background work of a decision. */
export const worksOf = ({ engines = [0], work }: Pick<Decision, "engines" | "work">): ReadonlyArray<Work> =>
  work === null ? [] : engines.map((ordinal) => ({ kind: work, ordinal }))

/** Names the rule that decided. Rules inside of it have already added their names. */
export const by = (rule: string, decision: Decision): NamedDecision => ({
  ...decision,
  rule: decision.rule === undefined ? rule : `${rule}.${decision.rule}`
})

/** Takes no action. The run waits for what `message` says, at the latest until `requeueAt`. */
export const wait = (message: string, requeueAt: number | null = null, publicMessage?: string): Decision => ({
  actions: [],
  work: null,
  message,
  ...(publicMessage === undefined ? {} : { publicMessage }),
  requeueAt
})

export const act = (message: string, ...actions: ReadonlyArray<Action>): Decision => ({ actions, work: null, message, requeueAt: null })

export const enter = (to: Phase, reason: string, ...before: ReadonlyArray<Action>): Decision =>
  act(reason, ...before, Action.Enter({ to, reason, failure: null, replaces: false }))

export const fail = (code: FailureCode, text: string): Decision =>
  act(`${code}: ${text}`, Action.KeepLog({ code }), Action.Enter({ to: "failed", reason: code, failure: { code, text }, replaces: false }))
