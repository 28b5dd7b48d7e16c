import type { Effect } from "effect"
import type { EditStage } from "./EditStage.ts"

/** One edit that someone else makes. */
export interface Edit {
  readonly name: string
  /** Makes the edit; gives what kubectl printed or refused with. */
  readonly make: (stage: EditStage) => Effect.Effect<string>
  /** The API server refuses it, with this text. */
  readonly refused?: string
  /** Takes it back. */
  readonly undo?: (stage: EditStage) => Effect.Effect<unknown>
  /** It stops the engine by itself, so callers may get errors until another one is ready. */
  readonly interrupts?: true
  /** What must be visible some time after the edit and before it is taken back: a command of kubectl, and what it prints. */
  readonly shows?: (stage: EditStage) => readonly [read: Effect.Effect<string>, holds: (text: string) => boolean]
}
