import { type CheckOutcome, CompletionAnswer, CompletionChunk, type CompletionCounts } from "@seatrial/domain"
import { Data, Schema } from "effect"

/** The engine could not be reached, or did not answer in time. */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{
  readonly message: string
  /**
   * The seconds that the client waited, if the engine accepted the connection but sent nothing; absent if it could not
   * be reached.
   */
  readonly silentFor?: number
}> {}

/** The engine gave an unexpected answer. `detail`: numbers and codes only, never generated text. */
export class Unexpected extends Data.TaggedError("Unexpected")<{
  readonly detail: string
  /** Whether the second attempt decides, because the check judges a share over both attempts. */
  readonly open?: boolean
  /** The failure code, if the check determines it more exactly than its name does. */
  readonly code?: CheckOutcome["code"]
  readonly cause?: CheckOutcome["cause"]
  /** The HTTP status, if it was unexpected. */
  readonly status?: number
}> {}

export const decodeWhole = Schema.decodeUnknownOption(Schema.fromJsonString(CompletionAnswer))
export const decodeFrame = Schema.decodeUnknownOption(Schema.fromJsonString(CompletionChunk))

export interface Answer {
  readonly content: string
  readonly reasoning: string
  readonly finishReason: string | null
  readonly usage: CompletionCounts
}

/** A tool call. `arguments` is JSON text. */
export interface Call {
  readonly id?: string | null
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A streamed answer with the properties that only a stream has. Times are monotonic milliseconds. */
export interface StreamedAnswer extends Answer {
  readonly sentAt: number
  /** The time of each piece of content or reasoning. */
  readonly arrivals: ReadonlyArray<number>
  readonly roles: number
  readonly finishReasons: number
  readonly usageFrames: number
  readonly toolCalls: ReadonlyArray<Call>
  /** The numbers by which clients assemble the parts of calls: 0, 1, 2, in this order. */
  readonly callNumbers: ReadonlyArray<number>
  /** Whether `[DONE]` came exactly once, with nothing after it. */
  readonly done: boolean
}
