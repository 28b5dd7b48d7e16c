import type { IncomingHttpHeaders } from "node:http"

/** Milliseconds before the caller's own limit at which it must have an answer. */
const margin = 1_000
/** Milliseconds that are waited for a caller who gives less than a second. */
const least = 500

/**
 * Milliseconds that a caller still waits for an answer, of whom `passed` have passed: as the OpenAI and Anthropic clients announce in whole seconds, less what an answer takes;
 * null where nothing is announced.
 */
export const patienceOf = (headers: IncomingHttpHeaders, passed = 0): number | null => {
  const announced = [headers["x-stainless-read-timeout"], headers["x-stainless-timeout"]].flatMap((value) =>
    typeof value === "string" && /^\d{1,9}(?:\.\d{1,9})?$/.test(value) ? Number(value) * 1_000 : []
  )
  return announced.length === 0 ? null : Math.max(least, Math.min(...announced) - margin - passed)
}
