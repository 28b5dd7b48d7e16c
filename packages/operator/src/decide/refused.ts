import { type FailureCode, isFinished } from "@seatrial/domain"
import { refusalDeadline, refusalDeadlineOfReplacement } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import type { Refusal, RefusedKind } from "../observation/Refusal.ts"
import { type Action, by, type Decision, fail } from "./Decision.ts"

/** The action that creates each kind of object, and the failure of a run for which it is refused for too long. */
const refusedActions: Record<RefusedKind, { readonly tag: Action["_tag"]; readonly code: FailureCode; readonly what: string } | null> = {
  pod: { tag: "EnsurePod", code: "container_blocked", what: "the engine's pod" },
  download: { tag: "EnsureFetch", code: "download_failed", what: "the Job of the download" },
  optional: null,
  other: null
}

/** The time limit of a refusal, milliseconds. A run that replaces the serving revision keeps its model unavailable. */
const limitOf = ({ run }: Observation): number => (run.replaces ? refusalDeadlineOfReplacement : refusalDeadline)

const deadlineOf = (observation: Observation, { since }: Refusal): number => countedFrom(observation, since) + limitOf(observation)

/**
 * Fails the run if an object that it needs is refused for too long. Before that the decision stands, and the request is
 * repeated.
 */
export const endRefused = (observation: Observation, decision: Decision, now: number): Decision => {
  const { refusal, run } = observation
  const refused = refusal === null ? null : refusedActions[refusal.kind]
  if (refusal === null || refused === null || isFinished(run.phase) || !decision.actions.some(({ _tag }) => _tag === refused.tag)) return decision
  const deadline = deadlineOf(observation, refusal)
  if (now < deadline) return { ...decision, requeueAt: Math.min(deadline, decision.requeueAt ?? deadline) }
  return by(
    "objectRefused",
    fail(
      refused.code,
      `The cluster refused ${refused.what} for ${limitOf(observation) / 60_000} minutes: a ResourceQuota, a LimitRange or an admission policy does not allow it, or an admission webhook does not answer. The message is in status.cause of the ModelDeployment. Ask the cluster administrator to change that, then deploy again.`
    )
  )
}

/**
 * Whether the GPUs that were granted to the run, and that its refused pod cannot take, are free for other runs. A
 * serving model keeps its GPUs for as long as a new run would have.
 */
export const givesClaimBack = (observation: Observation, now: number): boolean => {
  const { pod, refusal, run } = observation
  if (refusal?.kind !== "pod" || pod !== null) return false
  return !isFinished(run.phase) || now >= deadlineOf(observation, refusal)
}
