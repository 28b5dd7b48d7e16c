import { Option, Redacted } from "effect"
import { failedAnswer } from "./failedAnswer.ts"
import { HubAnswer, HubUnavailable } from "./failures.ts"
import type { HubSettings } from "./HubSettings.ts"
import { proxyFor } from "./proxy.ts"
import { type ConnectOptions, permitRedirect } from "./redirects.ts"
import { requestOnce } from "./requestOnce.ts"

/** Maximum number of redirects of one request: a renamed repository, the file's location, and the storage behind it. */
const maxRedirects = 5
const redirectStatuses = new Set([301, 302, 303, 307, 308])

type RequestHeaders = Readonly<Record<string, string>>

/** A successful response, and the number of requests that the hub's own origin answered for it. */
interface Answer {
  readonly response: Response
  readonly requests: number
}

/** Sends a request and follows redirects. Rejects with an error of `failedAnswer` or `permitRedirect`. */
export type Send = (url: string, headers: RequestHeaders, signal: AbortSignal) => Promise<Answer>

/** The address that a response redirects to; null if it is not a redirect. */
const locationOf = ({ headers, status }: Response): string | null => (redirectStatuses.has(status) ? headers.get("location") : null)

/**
 * Makes a `Send` for the hub. `token` is sent to the hub's own origin only. `onRefused` gets the number of requests
 * that the hub answered for a call that it then refused.
 */
export const makeSend = (settings: HubSettings, token: Option.Option<Redacted.Redacted<string>>, onRefused: (requests: number) => void): Send => {
  const hub = new URL(settings.endpoint)

  const once = (url: URL, accept: RequestHeaders, signal: AbortSignal, { lookup }: ConnectOptions): Promise<Response> => {
    const headers = new Headers({ ...accept, "user-agent": "seatrial" })
    if (url.origin === hub.origin && Option.isSome(token)) headers.set("authorization", `Bearer ${Redacted.value(token.value)}`)
    // With a proxy, the proxy resolves the host.
    if (lookup !== undefined && proxyFor(url) === null) return requestOnce(url, headers, signal, lookup)
    return fetch(url, { headers, signal, redirect: "manual" })
  }

  return async (input, accept, signal) => {
    let url = new URL(input)
    let options: ConnectOptions = {}
    let requests = 0
    for (let redirects = 0; ; redirects++) {
      if (url.origin === hub.origin) requests++
      const response = await once(url, accept, signal, options)
      if (response.ok) return { response, requests }
      const location = locationOf(response)
      await response.body?.cancel()
      if (location === null) {
        const failure = failedAnswer(response.status, response.headers)
        if (failure instanceof HubAnswer) onRefused(requests)
        throw failure
      }
      if (redirects === maxRedirects || !URL.canParse(location, url.href)) throw new HubUnavailable({ message: "The model hub redirects without end." })
      const next = new URL(location, url.href)
      options = permitRedirect(hub, next, settings.redirectHosts)
      url = next
    }
  }
}
