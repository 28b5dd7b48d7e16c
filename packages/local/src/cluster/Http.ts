import type { Effect, Stream } from "effect"
import type { JsonObject } from "./Json.ts"
import type { KubeStatus } from "./KubeStatus.ts"

/** A request as the handlers see it, its path without what authenticates it. */
export interface Call {
  readonly method: string
  readonly path: ReadonlyArray<string>
  /** What stood before the path and authenticated the request: empty, or `/token/TOKEN`. */
  readonly prefix: string
  readonly query: URLSearchParams
  readonly accept: string
  /** The media type of the body, without parameters. */
  readonly mediaType: string
  readonly userAgent: string
  readonly body: string
}

export type Answer =
  | { readonly code: number; readonly json: JsonObject }
  | { readonly code: number; readonly text: string }
  /** Written as it comes; the client's leaving interrupts it. */
  | { readonly code: number; readonly mediaType: string; readonly stream: Stream.Stream<string | Uint8Array> }

/** What answers a call. A layer of faults is a function from one handler to another. */
export type Handler = (call: Call) => Effect.Effect<Answer, KubeStatus>
