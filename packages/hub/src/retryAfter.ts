/** Maximum pause in milliseconds that is passed on. A hub that asks for more is tried again after that. */
const longest = 3_600_000

const seconds = (text: string | null | undefined): number | null => {
  const value = Number(text ?? "")
  return text !== null && text !== undefined && text.trim() !== "" && Number.isFinite(value) && value >= 0 ? value : null
}

/**
 * Milliseconds to wait by a response's headers, or null. `Retry-After` in seconds or as a date takes precedence over
 * `RateLimit` (`"api";r=0;t=55`: nothing remains for 55 s, or the older `limit=100, remaining=0, reset=55`) and
 * `RateLimit-Reset`. A date is compared with the response's own date.
 */
export const retryAfter = (headers: Headers): number | null => {
  const header = headers.get("retry-after")
  const until = header === null ? Number.NaN : Date.parse(header) - Date.parse(headers.get("date") ?? "")
  const left = headers.get("ratelimit")
  const reset = /(?:^|[;,\s])(?:t|reset)\s*=\s*(\d{1,9})/.exec(left ?? "")?.[1]
  const wait = seconds(header) ?? (Number.isNaN(until) ? null : until / 1000) ?? seconds(reset) ?? seconds(headers.get("ratelimit-reset"))
  return wait === null ? null : Math.min(longest, Math.max(0, Math.ceil(wait * 1000)))
}
