import { Duration, Effect, Option, Redacted, Schedule } from "effect"
import { parseJson } from "./boundedJson.ts"
import { HubAnswer, HubUnavailable, Unreadable } from "./failures.ts"
import type { HubSettings } from "./HubSettings.ts"
import { pauseBefore } from "./pauseBefore.ts"
import { proxyFor } from "./proxy.ts"
import { type Passage, passageTo } from "./redirects.ts"
import { requestOnce } from "./requestOnce.ts"
import { retryAfter } from "./retryAfter.ts"
import type { Sink } from "./safetensors.ts"

/** An answer to a ranged read: `start` is where its body begins within the file, `total` the file's size, both as the hub stated them. */
interface RangeAnswer {
  readonly start: number
  readonly end: number
  readonly total: number | null
  readonly body: ReadableStream<Uint8Array>
}

/** One caller's way to the hub. Each call is cut off by the settings' time-out and, but for `openRange`, sent again where it failed in passing. */
export interface HubConnection {
  /** What the hub's interface answers for a path, and the path of the next page where it names one. */
  readonly getJson: (path: string) => Effect.Effect<{ readonly value: unknown; readonly next: string | null }, HubAnswer | HubUnavailable | Unreadable>
  /**
   * Sends one request for the bytes `from` to `to` (inclusive) of a file; `to` null asks without a range, for the whole. Closing the body is the caller's.
   * Rejects with what `hubFailure` names. It is a promise because its body outlives it, under the same signal.
   */
  readonly openRange: (url: string, from: number, to: number | null, signal: AbortSignal) => Promise<RangeAnswer>
  /** Hands the bytes `from` to `to` (inclusive) of a file to a sink as they come, to a new one at each try. */
  readonly readInto: <A>(url: string, from: number, to: number, start: () => Sink<A>) => Effect.Effect<A, HubAnswer | HubUnavailable | Unreadable>
  readonly fileUrl: (repo: string, commit: string, path: string) => string
  /** Requests that the hub's own origin answered so far for `getJson` and `readInto`: redirects within it and what it refused are counted, tries that failed in passing are not. */
  readonly sent: () => number
}

/** Largest answer that is taken from the hub's JSON interface, in bytes. */
export const maxAnswerBytes = 4 * 1024 * 1024
/** Statuses with which a hub tells of a repository, a revision or a file: 416 is an empty file's. */
const aboutRepository = new Set([400, 401, 403, 404, 410, 416, 451])
/** Redirects that one request may take: a renamed repository, its file's place, and the storage behind it. */
const maxRedirects = 5

const unavailable = (message: string) => new HubUnavailable({ message })

/** A failed answer as an error of ours. The hub's own text is not repeated: it may hold an address. */
export const failedAnswer = (status: number, headers: Headers): HubAnswer | HubUnavailable => {
  const wait = retryAfter(headers)
  const pause = wait === null ? {} : { retryAfter: wait }
  if (status === 429) return new HubUnavailable({ message: "The model hub allows no more requests for now.", ...pause })
  // Only what hubs answer about a repository is believed to be about it: any other status is that of a proxy, or of something that is no hub.
  if (!aboutRepository.has(status)) return new HubUnavailable({ message: `The model hub answers with status ${status}.`, ...pause })
  const disabled = headers.get("x-error-code") === "DisabledRepo" || headers.get("x-error-message") === "Access to this resource is disabled."
  return new HubAnswer({ status, code: disabled ? "DisabledRepo" : headers.get("x-error-code") })
}

const failureOf = async (response: Response): Promise<HubAnswer | HubUnavailable> => {
  await response.body?.cancel()
  return failedAnswer(response.status, response.headers)
}

/** What went wrong in a call to the hub. */
export const hubFailure = (cause: unknown): HubAnswer | HubUnavailable =>
  cause instanceof HubAnswer || cause instanceof HubUnavailable ? cause : unavailable("The model hub cannot be reached.")

const readFailure = (cause: unknown) => (cause instanceof Unreadable ? cause : hubFailure(cause))

/** `Content-Range: bytes 0-99/1234` as numbers. */
const contentRange = (header: string | null): { readonly start: number; readonly end: number; readonly total: number } | null => {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header ?? "")
  return match === null ? null : { start: Number(match[1]), end: Number(match[2]), total: Number(match[3]) }
}

/** Hands the first `length` bytes of a body to a sink, which has to copy what it keeps. What a hub sends beyond them is nobody's. */
const drain = async (body: ReadableStream<Uint8Array>, length: number, push: (chunk: Uint8Array) => void): Promise<void> => {
  let left = length
  const reader = body.getReader()
  try {
    while (left > 0) {
      const { done, value } = await reader.read()
      if (done) throw unavailable("The model hub ended an answer early.")
      const taken = value.subarray(0, left)
      push(taken)
      left -= taken.length
      // Gives the memory back now: tens of megabytes would wait for the next collection else.
      if (value.buffer instanceof ArrayBuffer && value.length === value.buffer.byteLength) value.buffer.transfer(0)
    }
  } finally {
    // Releases the connection.
    await reader.cancel().catch(() => undefined)
  }
}

/** The whole of a body of unknown length, as far as it is taken. */
const readAnswer = async (body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > maxAnswerBytes) throw new Unreadable({ reason: `The model hub describes the repository in more than ${maxAnswerBytes} bytes.` })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

/** The path of the page that a `Link` header calls the next, where it is the hub's own. */
const nextPage = (header: string | null, base: string, origin: string): string | null => {
  const target = /<([^>]{1,2000})>\s*;\s*rel="next"/.exec(header ?? "")?.[1]
  if (target === undefined || !URL.canParse(target, base)) return null
  const url = new URL(target, base)
  return url.origin === origin ? url.href.slice(base.length) : null
}

/** How long a request that fails in passing is sent again: a few times within seconds, or as a download does, for minutes and as late as the hub asks for. */
export type Patience = "brief" | "long"

/** Speaks to the hub for the holder of `token`, which goes to the hub's own origin and to no other. */
export const connect = (settings: HubSettings, token: Option.Option<Redacted.Redacted<string>>, patience: Patience = "brief"): HubConnection => {
  const { endpoint } = settings
  const hub = new URL(endpoint)
  const { origin } = hub
  let sent = 0

  const once = (url: URL, accept: Readonly<Record<string, string>>, signal: AbortSignal, { lookup }: Passage): Promise<Response> => {
    const headers = new Headers({ ...accept, "user-agent": "seatrial" })
    if (url.origin === origin && Option.isSome(token)) headers.set("authorization", `Bearer ${Redacted.value(token.value)}`)
    // By a proxy it is the proxy that finds the host.
    if (lookup !== undefined && proxyFor(url) === null) return requestOnce(url, headers, signal, lookup)
    return fetch(url, { headers, signal, redirect: "manual" })
  }

  const send = async (input: string, accept: Readonly<Record<string, string>>, signal: AbortSignal) => {
    let url = new URL(input)
    let passage: Passage = {}
    let requests = 0
    for (let redirects = 0; ; redirects++) {
      if (url.origin === origin) requests++
      const response = await once(url, accept, signal, passage)
      if (response.ok) return { response, requests }
      const location = response.headers.get("location")
      if (![301, 302, 303, 307, 308].includes(response.status) || location === null) {
        const failure = await failureOf(response)
        if (failure instanceof HubAnswer) sent += requests
        throw failure
      }
      await response.body?.cancel()
      if (redirects === maxRedirects || !URL.canParse(location, url.href)) throw unavailable("The model hub redirects without end.")
      const next = new URL(location, url.href)
      passage = passageTo(hub, next, settings.redirectHosts)
      url = next
    }
  }

  const limited = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.timeoutOrElse(effect, { duration: settings.timeout, orElse: () => Effect.fail(unavailable("The model hub does not answer in time.")) })

  const patient = <A, E extends HubAnswer | HubUnavailable | Unreadable>(effect: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      let failures = 0
      return Effect.retry(
        Effect.tapError(effect, (error) => {
          if (error._tag !== "HubUnavailable" || ++failures > settings.downloadRetries) return Effect.void
          return Effect.sleep(pauseBefore(settings.retryDelay, failures, error))
        }),
        { times: settings.downloadRetries, while: (error) => error._tag === "HubUnavailable" }
      )
    })

  const brief = <A, E extends HubAnswer | HubUnavailable | Unreadable>(effect: Effect.Effect<A, E>) =>
    Effect.retry(effect, {
      times: settings.retries,
      schedule: Schedule.exponential(settings.retryDelay),
      // A hub that names a longer pause is believed, and left to whoever can wait.
      while: (error) => error._tag === "HubUnavailable" && (error.retryAfter ?? 0) <= Duration.toMillis(settings.retryDelay)
    })

  const retried = patience === "long" ? patient : brief

  const openCounted = async (url: string, from: number, to: number | null, signal: AbortSignal) => {
    const { requests, response } = await send(url, { "accept-encoding": "identity", ...(to === null ? {} : { range: `bytes=${from}-${to}` }) }, signal)
    const { body } = response
    if (body === null) throw unavailable("The model hub sends an empty answer.")
    const coded = response.headers.get("content-encoding")
    if (response.status !== 206) {
      const length = coded === null ? response.headers.get("content-length") : null
      const total = length === null ? null : Number(length)
      return { start: 0, end: total === null ? Number.MAX_SAFE_INTEGER : total - 1, total, body, requests }
    }
    const range = contentRange(response.headers.get("content-range"))
    if (range === null || range.start !== from || (to !== null && range.end > to) || (coded !== null && coded !== "identity")) {
      await body.cancel()
      throw unavailable("The model hub sends other bytes than were asked for.")
    }
    return { ...range, body, requests }
  }

  return {
    getJson: (path) =>
      Effect.tryPromise({
        try: async (signal) => {
          const { requests, response } = await send(`${endpoint}${path}`, { accept: "application/json" }, signal)
          const value = parseJson(await readAnswer(response.body))
          if (value === undefined) throw unavailable("The model hub answers with something that is not JSON.")
          sent += requests
          return { value, next: nextPage(response.headers.get("link"), endpoint, origin) }
        },
        catch: readFailure
      }).pipe(limited, retried),
    openRange: openCounted,
    readInto: (url, from, to, start) =>
      Effect.tryPromise({
        try: async (signal) => {
          const answer = await openCounted(url, from, to, signal)
          // A hub that ignores ranges sends the file from its start; only a read from there is served by it.
          if (answer.start !== from) {
            await answer.body.cancel()
            throw unavailable("The model hub does not serve ranges of files.")
          }
          const sink = start()
          await drain(answer.body, to - from + 1, sink.push)
          const read = sink.end()
          sent += answer.requests
          return read
        },
        catch: readFailure
      }).pipe(limited, retried),
    fileUrl: (repo, commit, path) => `${endpoint}/${repo}/resolve/${commit}/${encodeURIComponent(path)}`,
    sent: () => sent
  }
}
