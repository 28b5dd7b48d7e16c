import type { Effect, Stream } from "effect"
import type { JsonObject } from "./Json.ts"
import type { KubeStatus } from "./KubeStatus.ts"

/** A request for the handlers, with a path that contains no credentials. */
export interface Call {
  readonly method: string
  readonly path: ReadonlyArray<string>
  /** The authenticating prefix of the path: empty, or `/token/TOKEN`. */
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
  /** Written as data arrives. A disconnect of the client interrupts it. */
  | { readonly code: number; readonly mediaType: string; readonly stream: Stream.Stream<string | Uint8Array> }

/** Answers a call. Faults are injected by wrapping a handler. */
export type Handler = (call: Call) => Effect.Effect<Answer, KubeStatus>
