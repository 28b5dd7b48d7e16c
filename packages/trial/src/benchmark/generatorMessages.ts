import type { ThreadReport } from "./RequestRecord.ts"

/** The settings that every thread of the load generator receives at its start. */
export interface Orders {
  readonly host: string
  readonly port: number
  readonly path: string
  /** A JSON object without its closing brace. Prompt and limit follow. */
  readonly body: string
  readonly inputTokens: number
  readonly vocabSize: number
  /** Milliseconds of the streams' own clock. */
  readonly startedAt: number
  /** Numbers that all threads share, at the indexes `sharedAt`. */
  readonly shared: SharedArrayBuffer
}

/**
 * `stop`: 1 if the streams must stop sending. `ended`: number of requests that ended in this step. `seed`: of the next
 * prompt. `heard`: milliseconds from `Orders.startedAt` to the last token.
 */
export const sharedAt = { stop: 0, ended: 1, seed: 2, lastTokenAt: 3 } as const
export const sharedBytes = 4 * Int32Array.BYTES_PER_ELEMENT

/** The part of a step that one thread runs. */
export interface ThreadStep {
  readonly streams: ReadonlyArray<number>
  /** Maximum number of requests per stream. */
  readonly perStream: number
  readonly outputTokens: number
}

/** `peek`: report the progress of the step. `cut`: end the current requests. */
export type ThreadMessage = { readonly kind: "run"; readonly step: ThreadStep } | { readonly kind: "peek" } | { readonly kind: "cut" }

export type ThreadAnswer =
  | { readonly kind: "ended"; readonly report: ThreadReport }
  /** `firsts`: the first chunk of each stream that has one. `arrivals`: number of chunks so far. */
  | { readonly kind: "peeked"; readonly firsts: ReadonlyArray<number>; readonly arrivals: Float64Array }
  | { readonly kind: "fault"; readonly message: string }

const kindOf = (value: unknown): unknown => (typeof value === "object" && value !== null && "kind" in value ? value.kind : undefined)
const kinds = (...known: ReadonlyArray<string>) => new Set<unknown>(known)
const messages = kinds("run", "peek", "cut")
const answers = kinds("ended", "peeked", "fault")

// Both sides belong to the same version of this package, so the kind determines the rest.
export const isThreadMessage = (value: unknown): value is ThreadMessage => messages.has(kindOf(value))
export const isThreadAnswer = (value: unknown): value is ThreadAnswer => answers.has(kindOf(value))
export const isOrders = (value: unknown): value is Orders => typeof value === "object" && value !== null && "shared" in value
