import type { Usage } from "@seatrial/domain"
import type { Refusal } from "../refusals.ts"

/**
 * Usage reported by an engine. `clipped`: the engine reported more cached tokens than the prompt has, and the excess
 * was removed.
 */
export type ReportedUsage = Usage & { readonly clipped?: true }

/** One parsed frame of an engine's stream. */
export type Frame =
  /** A frame that the caller does not get. */
  | { readonly _tag: "Comment" }
  /** A frame that is not part of the dialect and not an error. */
  | { readonly _tag: "Broken" }
  /** An error of the engine as JSON; empty if the engine sent none. */
  | { readonly _tag: "Failed"; readonly payload: string }
  /** The end of the stream. The caller gets the reader's `ending` instead. */
  | { readonly _tag: "Done"; readonly usage: string | null; readonly finishReason: string | null }
  | {
      readonly _tag: "Chunk"
      /** The text for the caller in Latin-1; null if the frame is withheld. */
      readonly text: string | null
      /** JSON of the usage, for the dialect's `usageOf`; null if there is none. */
      readonly usage: string | null
      readonly hasContent: boolean
      /** `stop`, `length`, `tool_calls` or `content_filter`; null if the answer continues. */
      readonly finishReason: string | null
    }

/** Reads the stream of one engine. All text is Latin-1, one character per byte. */
export interface StreamReader {
  /** Reads a frame, including its blank line. */
  readonly read: (frame: string) => Frame
  /** Whether the answer is complete, so that only the end marker may be missing. */
  readonly finished: boolean
  /** The last frame of a complete answer. It is sent after the record is committed. */
  readonly ending: () => string
  /** The frames that end a failed stream of which bytes were sent. */
  readonly failure: (error: Refusal, requestId: string) => string
  /** What a reader in another process needs to read the next frame, as JSON of at most a few kilobytes. */
  readonly state: () => string
  /** Continues after the frame that another reader read. `ending`: that reader's last frame; null before the end. */
  readonly restore: (state: string, ending: string | null) => void
}

/**
 * A frame that was read, and the reader's state and last frame after it. `ending` is null unless the stream is done.
 */
export interface ReadFrame {
  readonly frame: Frame
  readonly state: string
  readonly ending: string | null
}

export interface StreamOptions {
  /** The callable name that the caller sent. */
  readonly model: string
  /** Whether the caller asked for the usage chunk. */
  readonly wantsUsage: boolean
  /** The number of choices in the answer. */
  readonly choices: number
  /** Whether the cached tokens that the engine reports do not cover all prompts. */
  readonly cachedUnknown: boolean
}

/** A parsed answer that is not a stream. */
export interface WholeAnswer {
  /** Null if the engine reported none. */
  readonly usage: ReportedUsage | null
  /** Whether the answer ended with a valid finish reason. */
  readonly finished: boolean
  readonly finishReason: string | null
  /** The body for the caller: the engine's own text unless something must change. */
  readonly body: string
}

/** The wire format of a family of endpoints, for engine and caller. */
export interface Dialect {
  readonly makeReader: (options: StreamOptions) => StreamReader
  /** Null if the text is not an answer; it may be an error. */
  readonly readWhole: (text: string) => WholeAnswer | null
  /** Parses the usage of a frame; null if it is invalid. */
  readonly usageOf: (json: string) => ReportedUsage | null
  /** Sent to keep the connection of a silent stream open. */
  readonly heartbeat: string
  /** The Error object. */
  readonly errorBody: (error: Refusal, requestId: string) => string
}

/** Encodes text as UTF-8 with one character per byte. */
export const toLatin1 = (text: string): string => Buffer.from(text, "utf8").toString("latin1")

/** Decodes UTF-8 with one character per byte. */
export const fromLatin1 = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8")

/** The data of a frame in Latin-1; null if it has none. */
export const dataOf = (frame: string): string | null => {
  const data: Array<string> = []
  for (const line of frame.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5))
  }
  return data.length === 0 ? null : data.join("\n")
}

/** The event name of a frame; empty if it has none. */
export const eventOf = (frame: string): string => /^event: ?(.*)$/m.exec(frame)?.[1] ?? ""

/** A named event in Latin-1. */
export const namedEvent = (name: string, data: string): string => `event: ${name}\ndata: ${toLatin1(data)}\n\n`

export const comment: Frame = { _tag: "Comment" }
export const broken: Frame = { _tag: "Broken" }
