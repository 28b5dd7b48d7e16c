import { Data } from "effect"

/**
 * An adapter cannot be merged into these weights, or not compared with them. The message gives the reason and contains
 * no paths or hosts.
 */
export class NotMergeable extends Data.TaggedError("NotMergeable")<{ readonly message: string }> {}
