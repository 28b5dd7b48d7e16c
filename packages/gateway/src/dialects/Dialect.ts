import type { Usage } from "@seatrial/domain"
import type { Refusal } from "../refusals.ts"

/** Usage as an engine told it; `clipped`: it told of more cached tokens than its prompt has, and of those above it the record does not tell. */
export type ReportedUsage = Usage & { readonly clipped?: true }

/** One frame of an engine's stream, read. */
export type Frame =
  /** Nothing for the caller. */
  | { readonly _tag: "Comment" }
  /** Neither a frame of the dialect nor an error. */
  | { readonly _tag: "Broken" }
  /** The engine's error: its JSON; empty where it told none. */
  | { readonly _tag: "Failed"; readonly payload: string }
  /** The end of the stream. What the caller gets of it is the reader's `ending`. */
  | { readonly _tag: "Done"; readonly usage: string | null; readonly finishReason: string | null }
  | {
      readonly _tag: "Chunk"
      /** What the caller gets, in Latin-1; null where the frame is kept back. */
      readonly text: string | null
      /** JSON of the usage, for the dialect's `usageOf`; null where there is none. */
      readonly usage: string | null
      readonly hasContent: boolean
      /** `stop`, `length`, `tool_calls` or `content_filter`; null where the answer goes on. */
      readonly finishReason: string | null
    }

/** Reads the stream of one engine. Frames and what it gives are Latin-1, one character a byte. */
export interface StreamReader {
  /** Reads a frame, its blank line included. */
  readonly read: (frame: string) => Frame
  /** Whether the answer has come to its end, so that only its marker may be missing. */
  readonly finished: boolean
  /** The last frame of an answer that came to its end; it waits for the record. */
  readonly ending: () => string
  /** The frames that end a stream of which bytes have gone out and that failed. */
  readonly failure: (error: Refusal, requestId: string) => string
}

export interface StreamOptions {
  /** The callable name that was asked for. */
  readonly model: string
  /** Whether the caller asked for the usage chunk. */
  readonly wantsUsage: boolean
  /** How many choices the answer has. */
  readonly choices: number
  /** Whether what the engine tells of its cache is not of all prompts. */
  readonly cachedUnknown: boolean
}

/** An answer that is not a stream, read. */
export interface WholeAnswer {
  /** Null where the engine told none. */
  readonly usage: ReportedUsage | null
  /** Whether the answer came to an end that an answer can have. */
  readonly finished: boolean
  readonly finishReason: string | null
  /** What the caller gets: the engine's own text where nothing is to be changed. */
  readonly body: string
}

/** How a family of endpoints speaks, to the engine and to the caller. */
export interface Dialect {
  readonly makeReader: (options: StreamOptions) => StreamReader
  /** Null: no answer, which may be an error. */
  readonly readWhole: (text: string) => WholeAnswer | null
  /** The usage that a frame told; null where it cannot be read. */
  readonly usageOf: (json: string) => ReportedUsage | null
  /** What keeps a silent stream's connection alive. */
  readonly heartbeat: string
  /** The Error object. */
  readonly errorBody: (error: Refusal, requestId: string) => string
}

/** UTF-8's bytes, one character each. */
export const toLatin1 = (text: string): string => Buffer.from(text, "utf8").toString("latin1")

/** Text of bytes, one character each. */
export const fromLatin1 = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8")

/** The data of a frame, in Latin-1; null where it has none. */
export const dataOf = (frame: string): string | null => {
  const data: Array<string> = []
  for (const line of frame.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5))
  }
  return data.length === 0 ? null : data.join("\n")
}

/** The name of a frame's event; empty where it has none. */
export const eventOf = (frame: string): string => /^event: ?(.*)$/m.exec(frame)?.[1] ?? ""

/** A named event, in Latin-1. */
export const namedEvent = (name: string, data: string): string => `event: ${name}\ndata: ${toLatin1(data)}\n\n`

export const comment: Frame = { _tag: "Comment" }
export const broken: Frame = { _tag: "Broken" }
