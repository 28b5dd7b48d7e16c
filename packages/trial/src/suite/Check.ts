import type { CheckOutcome } from "@seatrial/domain"
import { Data, Effect } from "effect"
import { type EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"

/** The effect of a failure; see `CheckOutcome`. */
export type CheckClass = CheckOutcome["class"]

/** A check that does not apply, which it found while it ran. `reason`: a few words. */
export class NotApplicable extends Data.TaggedError("NotApplicable")<{
  readonly reason: string
  /**
   * Whether the model offers the feature that the check is about, but nothing confirmed it. The feature is then
   * withdrawn.
   */
  readonly unseen?: boolean
}> {}

/** One check of the suite. */
export interface TrialCheck {
  readonly name: string
  readonly class: CheckClass
  /** What the check detects, for people. */
  readonly purpose: string
  /** Time limit in seconds for an engine that takes 20 ms per token. */
  readonly limitSeconds: (subject: SuiteSubject) => number
  /** Whether the check depends on elapsed time. It then passes if the second attempt passes. */
  readonly clockBound?: boolean
  /**
   * Whether the check uses only features that earlier checks confirmed, so that a missing feature is not reported again
   * for each path.
   */
  readonly usesConfirmedFeatures?: boolean
  /** Why the check does not apply to the model, in a few words; null if it applies. */
  readonly skipped?: (subject: SuiteSubject) => string | null
  /** Succeeds with the measured numbers and codes, never with generated text. Fails with what was unexpected. */
  readonly run: (subject: SuiteSubject) => Effect.Effect<string, EngineUnreachable | Unexpected | NotApplicable>
}

/** The typed facts about an unexpected answer. Decisions read these facts and never the text. */
export type Evidence = Pick<Unexpected, "code" | "cause" | "status">

export const unexpected = (detail: string, evidence: Evidence = {}): Effect.Effect<never, Unexpected> => Effect.fail(new Unexpected({ detail, ...evidence }))

/** Whether the engine failed with an HTTP 5xx. Such errors come and go, and say nothing about its answers. */
export const isBroken = ({ status }: Pick<Unexpected, "status">): boolean => status !== undefined && status >= 500

export const seconds = (count: number) => () => count
