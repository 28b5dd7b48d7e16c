import { Data, Effect } from "effect"
import { type EngineUnreachable, Unexpected } from "../EngineClient.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"

/** `required`: a failure ends the run. `capability`: it takes a capability from the model. `informs`: it does neither. */
export type CheckClass = "required" | "capability" | "informs"

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

export const unexpected = (detail: string): Effect.Effect<never, Unexpected> => Effect.fail(new Unexpected({ detail }))

/** Whether the engine itself broke over a request: that comes and goes, and says nothing of its answers. */
export const isBroken = ({ detail }: Pick<Unexpected, "detail">): boolean => /\bHTTP 5\d\d\b/.test(detail)

export const seconds = (count: number) => () => count
