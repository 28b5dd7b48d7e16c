import type { Effect } from "effect"
import type { EngineUnreachable, Unexpected } from "../EngineClient.ts"
import type { Subject } from "../Subject.ts"

/** One row of the suite: succeeds with its detail (numbers and codes, never generated text), or fails with what was unexpected. Every row is required. */
export interface TrialCheck {
  readonly name: string
  /** Why it does not apply to the model; absent where it always does. */
  readonly skipped?: (subject: Subject) => boolean
  readonly run: (subject: Subject) => Effect.Effect<string, EngineUnreachable | Unexpected>
}
