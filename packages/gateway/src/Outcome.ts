import type { RequestError, Usage } from "@seatrial/domain"
import type { ReportedUsage } from "./dialects/Dialect.ts"
import type { Progress } from "./Progress.ts"
import type { Refusal } from "./refusals.ts"

/** How a request ended. The caller learns it after the record is committed. */
export interface Outcome {
  /** `refused`: the engine rejected the request before any work. */
  readonly state: "completed" | "refused"
  readonly status: number
  readonly usage: ReportedUsage
  readonly finishReason: string | null
  /** Null if the answer is complete. */
  readonly error: Refusal | null
  readonly note: string | null
  /** The answer, in bytes if it is large; null for a stream. */
  readonly body: string | Buffer | null
}

export const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: null, cache_write_tokens: null }

const noteOf = (what: string, { countsDelivered, reportedUsage }: Progress) =>
  countsDelivered
    ? `${what} The output tokens are those that were delivered.`
    : reportedUsage !== null
      ? `${what} The usage is the last that the engine reported.`
      : what

/** The engine did or may have done work, and the answer is not complete. */
export const failed = (error: Refusal, what: string, progress: Progress): Outcome => ({
  state: "completed",
  status: error.status,
  usage: progress.usage,
  finishReason: null,
  error,
  note: noteOf(what, progress),
  body: null
})

/** The engine did no work. */
export const refused = (error: Refusal): Outcome => ({
  state: "refused",
  status: error.status,
  usage: noUsage,
  finishReason: null,
  error,
  note: null,
  body: null
})

/** The error as it is stored in the request's record: without names that the caller chose. */
export const requestError = ({ code, message, param, recorded }: Refusal): RequestError => ({ code, ...(recorded ?? { message, param }) })
