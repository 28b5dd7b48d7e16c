import { Data } from "effect"

/** An adapter cannot be merged into these weights, or not compared with them; says why, in words that show neither paths nor hosts. */
export class NotMergeable extends Data.TaggedError("NotMergeable")<{ readonly message: string }> {}
