import type { IncomingHttpHeaders } from "node:http"

/** Milliseconds before the caller's own time limit at which the answer must be there. */
const margin = 1_000
/** Shortest wait, even for a caller with a time limit below one second. */
const least = 500

/**
 * Milliseconds that the caller still waits for an answer; `passed` have passed already. OpenAI and Anthropic clients
 * announce their time limit in whole seconds. Null if the headers have no time limit.
 */
export const patienceOf = (headers: IncomingHttpHeaders, passed = 0): number | null => {
  const announced = [headers["x-stainless-read-timeout"], headers["x-stainless-timeout"]].flatMap((value) =>
    typeof value === "string" && /^\d{1,9}(?:\.\d{1,9})?$/.test(value) ? Number(value) * 1_000 : []
  )
  return announced.length === 0 ? null : Math.max(least, Math.min(...announced) - margin - passed)
}
