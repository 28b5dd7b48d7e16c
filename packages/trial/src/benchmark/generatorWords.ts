import type { ThreadReport } from "./RequestRecord.ts"

/** What every thread of the load generator is told when it starts. */
export interface Orders {
  readonly host: string
  readonly port: number
  readonly path: string
  /** A JSON object without its closing brace; prompt and limit follow. */
  readonly body: string
  readonly inputTokens: number
  readonly vocabSize: number
  /** Of the streams' own clock, milliseconds. */
  readonly startedAt: number
  /** Numbers that all threads share, at `sharedAt`. */
  readonly shared: SharedArrayBuffer
}

/** `stop`: 1 where no stream sends any more. `ended`: requests that ended in this step. `seed`: of the next prompt. `heard`: milliseconds of `Orders.startedAt` until the last token. */
export const sharedAt = { stop: 0, ended: 1, seed: 2, heard: 3 } as const
export const sharedBytes = 4 * Int32Array.BYTES_PER_ELEMENT

/** A thread's part of a step. */
export interface ThreadStep {
  readonly streams: ReadonlyArray<number>
  /** Requests of each stream at most. */
  readonly perStream: number
  readonly outputTokens: number
}

/** `peek`: how the step goes on. `cut`: what is under way ends. */
export type ThreadMessage = { readonly kind: "run"; readonly step: ThreadStep } | { readonly kind: "peek" } | { readonly kind: "cut" }

export type ThreadAnswer =
  | { readonly kind: "ended"; readonly report: ThreadReport }
  /** `firsts`: the first chunk of each stream that has one; `arrivals`: all chunks so far. */
  | { readonly kind: "peeked"; readonly firsts: ReadonlyArray<number>; readonly arrivals: Float64Array }
  | { readonly kind: "fault"; readonly message: string }

const kindOf = (value: unknown): unknown => (typeof value === "object" && value !== null && "kind" in value ? value.kind : undefined)
const kinds = (...known: ReadonlyArray<string>) => new Set<unknown>(known)
const messages = kinds("run", "peek", "cut")
const answers = kinds("ended", "peeked", "fault")

// Both sides are of this package and of one version: the kind tells the rest.
export const isThreadMessage = (value: unknown): value is ThreadMessage => messages.has(kindOf(value))
export const isThreadAnswer = (value: unknown): value is ThreadAnswer => answers.has(kindOf(value))
export const isOrders = (value: unknown): value is Orders => typeof value === "object" && value !== null && "shared" in value
