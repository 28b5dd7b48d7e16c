import { Data } from "effect"

/** Why there is no reference. `code`: null if the program failed, and then `message` says how. */
export class NoReference extends Data.TaggedError("NoReference")<{ readonly code: string | null; readonly message: string }> {}
