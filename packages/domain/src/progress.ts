import { Schema } from "effect"
import { Phase, V1Phase } from "./phases.ts"
import { Id, Timestamp } from "./records.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** What a deployment is waiting for before its engine starts. */
export const WaitReason = Schema.Literals(["older_run", "organization_limit", "host_class", "capacity"])
export type WaitReason = typeof WaitReason.Type

/** `place`: position in the queue of its host class, 1 goes next; null if the deployment is in no queue. */
export const QueueProgress = Schema.Struct({ waits_for: WaitReason, place: Schema.NullOr(Count) })
export type QueueProgress = typeof QueueProgress.Type

/** `seconds_left` is null if no data arrives. `stalled`: no data for at least a minute. */
export const DownloadProgress = Schema.Struct({
  bytes: Count,
  total_bytes: Count,
  bytes_per_second: Count,
  seconds_left: Schema.NullOr(Count),
  stalled: Schema.Boolean
})
export type DownloadProgress = typeof DownloadProgress.Type

/** The current activity of a deployment as the operator records it. */
export const RunProgress = Schema.Struct({
  /** The phase that the entry describes. */
  phase: Phase,
  message: Schema.String,
  queue: Schema.NullOr(QueueProgress),
  download: Schema.NullOr(DownloadProgress)
})
export type RunProgress = typeof RunProgress.Type

/** The current activity of a deployment as the API shows it: an addition to the contract's records. */
export const DeploymentProgress = Schema.Struct({
  deployment_id: Id,
  object: Schema.Literal("deployment_progress"),
  status: V1Phase,
  /** One or more sentences for a person. */
  message: Schema.String,
  queue: Schema.NullOr(QueueProgress),
  download: Schema.NullOr(DownloadProgress),
  updated_at: Timestamp
}).annotate({ identifier: "DeploymentProgress" })
export type DeploymentProgress = typeof DeploymentProgress.Type

/** Text for the transition reasons that are codes. */
const reasonTexts: Readonly<Record<string, string>> = {
  Created: "The deployment waits for the operator.",
  CancelledByUser: "Canceled by a user.",
  Serving: "Verified. Starting to serve.",
  Verified: "Verified. The deployment has serve: false, so the revision gets no traffic."
}

/** The message for a phase before the operator has recorded any progress: the reason for the last transition. */
export const phaseMessage = (phase: Phase, reason: string | null): string =>
  reason === null ? `The deployment is in the phase ${phase}.` : (reasonTexts[reason] ?? reason)
