import { HubAnswer, HubUnavailable } from "./failures.ts"
import { retryAfter } from "./retryAfter.ts"

/** Statuses that describe a repository, a revision or a file. 416 is an empty file. */
const aboutRepository = new Set([400, 401, 403, 404, 410, 416, 451])

/** Maps a failed response to an error. The hub's own text is omitted, because it may contain an address. */
export const failedAnswer = (status: number, headers: Headers): HubAnswer | HubUnavailable => {
  const wait = retryAfter(headers)
  const pause = wait === null ? {} : { retryAfter: wait }
  if (status === 429) return new HubUnavailable({ message: "The model hub limits requests. Try again later.", ...pause })
  // Only these statuses describe a repository. Any other status comes from a proxy or from a server that is not a hub.
  if (!aboutRepository.has(status)) return new HubUnavailable({ message: `The model hub answers with status ${status}.`, ...pause })
  const disabled = headers.get("x-error-code") === "DisabledRepo" || headers.get("x-error-message") === "Access to this resource is disabled."
  return new HubAnswer({ status, code: disabled ? "DisabledRepo" : headers.get("x-error-code") })
}
