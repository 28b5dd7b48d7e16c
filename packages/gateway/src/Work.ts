import type { ServerResponse } from "node:http"
import type { RequestId } from "@seatrial/domain"
import type { Caller, RequestStart } from "@seatrial/store"
import type { BodyShare } from "./BodyBudget.ts"
import type { Dialect, StreamReader } from "./dialects/Dialect.ts"
import type { EventStream } from "./EventStream.ts"
import type { Outcome } from "./Outcome.ts"
import type { Observation, Observed } from "./observability/Observer.ts"
import type { PendingInsert } from "./PendingInsert.ts"
import type { Progress } from "./Progress.ts"
import type { PromptSample } from "./PromptSample.ts"
import type { ReceiptDigests } from "./ReceiptDigests.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import type { Refusal } from "./refusals.ts"
import type { RoutedRequest } from "./routing/RoutedRequest.ts"
import type { CheckedRequest } from "./vocabulary/checkRequest.ts"

/** An authenticated, checked request that has an engine. */
export interface Admitted {
  readonly id: RequestId
  readonly caller: Caller
  readonly checked: CheckedRequest
  /** The request's routing; it has an engine. */
  readonly routedRequest: RoutedRequest
  readonly response: ServerResponse
  /** Aborted when the request needs no answer any more; the reason is `gone` if the caller left. */
  readonly requestAbort: RequestAbort
  /** `performance.now()` at the request's first byte. */
  readonly startedAt: number
  /** The caller's own header. */
  readonly traceparent: string | undefined
  /** Null if the caller did not ask for digests. */
  readonly digests: ReceiptDigests | null
  /** Reserves memory until the request has ended. Returns the refusal if the organization has used up its share. */
  readonly reserve: (bytes: number) => Refusal | null
  /** The memory of the frames that the caller has not read. */
  readonly unreadFrames: BodyShare
  /** Releases the body. No further engine can get the request. */
  readonly releaseBody: () => void
}

/** A request under way. */
export interface Work {
  readonly admitted: Admitted
  readonly start: RequestStart
  readonly observed: Observed
  readonly dialect: Dialect
  readonly stream: EventStream | null
  /** Reader of the current attempt: each engine's stream needs a new one. */
  reader: StreamReader
  readonly progress: Progress
  readonly pendingInsert: PendingInsert
  readonly observation: Observation
  /** Whether the request was repeated with a lower token limit, because the prompt left too little room. */
  cut: boolean
  /** `performance.now()` when the request was sent to the current engine; null before. */
  sentAt: number | null
  /** Sample of the prompt, kept until the engine has reported its tokens. */
  sample: PromptSample | null
  /** Whether its engine has ended, so that a late insert of its record does not list it as running. */
  isOver: boolean
}

/**
 * The request should be repeated: with `cut` on the same engine, otherwise on another one. If there is no other,
 * `outcome` applies.
 */
export type Retry = { readonly retry: "lost" | "stale" | "full"; readonly outcome: Outcome } | { readonly retry: "cut" }
