import type { CheckOutcome } from "@seatrial/domain"
import { Data, Effect } from "effect"
import { type EngineUnreachable, Unexpected } from "../EngineClient.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"

/** What a failure does; see `CheckOutcome`. */
export type CheckClass = CheckOutcome["class"]

/** A row that turned out not to apply while it ran; `reason` in a few words. */
export class NotApplicable extends Data.TaggedError("NotApplicable")<{
  readonly reason: string
  /** Whether the model is shown with what the row is about, which nothing has seen then: it is withdrawn. */
  readonly unseen?: boolean
}> {}

/** One row of the suite. */
export interface TrialCheck {
  readonly name: string
  readonly class: CheckClass
  /** What it finds, for people. */
  readonly purpose: string
  /** Seconds that it may take at 20 ms a token. */
  readonly limitSeconds: (subject: SuiteSubject) => number
  /** Whether it judges by the clock, so that passing at the second try is passing. */
  readonly clockBound?: boolean
  /** Whether it is asked only for what the rows before it have seen working: what the model was found without is no fault of one path. */
  readonly heldToSeen?: boolean
  /** Why it does not apply to the model, in a few words; null where it does. */
  readonly skipped?: (subject: SuiteSubject) => string | null
  /** Succeeds with its detail (numbers and codes, never generated text), or fails with what was unexpected. */
  readonly run: (subject: SuiteSubject) => Effect.Effect<string, EngineUnreachable | Unexpected | NotApplicable>
}

/** What is known of an unexpected answer beside the sentence about it: all that a decision may read. */
export type Evidence = Pick<Unexpected, "code" | "cause" | "status">

export const unexpected = (detail: string, evidence: Evidence = {}): Effect.Effect<never, Unexpected> => Effect.fail(new Unexpected({ detail, ...evidence }))

/** Whether the engine itself broke over a request: such errors come and go, and say nothing about its answers. */
export const isBroken = ({ status }: Pick<Unexpected, "status">): boolean => status !== undefined && status >= 500

export const seconds = (count: number) => () => count
