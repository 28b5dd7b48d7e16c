import type { RequestError, Usage } from "@seatrial/domain"
import type { ReportedUsage } from "./dialects/Dialect.ts"
import type { Progress } from "./Progress.ts"
import type { Refusal } from "./refusals.ts"

/** How a request ended. The caller is told of it when the record is committed. */
export interface Outcome {
  /** `refused`: the engine turned the request away before any work. */
  readonly state: "completed" | "refused"
  readonly status: number
  readonly usage: ReportedUsage
  readonly finishReason: string | null
  /** Null: the answer is complete. */
  readonly error: Refusal | null
  readonly note: string | null
  /** The whole answer, where it is not a stream. */
  readonly body: string | null
}

export const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: null, cache_write_tokens: null }

const noteOf = (what: string, { countsDelivered, told }: Progress) =>
  countsDelivered ? `${what} The output counts what was delivered.` : told !== null ? `${what} Usage as the engine last told it.` : what

/** Work was or may have been done, and the answer is not complete. */
export const failed = (error: Refusal, what: string, progress: Progress): Outcome => ({
  state: "completed",
  status: error.status,
  usage: progress.usage,
  finishReason: null,
  error,
  note: noteOf(what, progress),
  body: null
})

/** No work was done. */
export const refused = (error: Refusal): Outcome => ({
  state: "refused",
  status: error.status,
  usage: noUsage,
  finishReason: null,
  error,
  note: null,
  body: null
})

/** The error as the request's record keeps it: without names that the caller wrote. */
export const requestError = ({ code, message, param, recorded }: Refusal): RequestError => ({ code, ...(recorded ?? { message, param }) })
