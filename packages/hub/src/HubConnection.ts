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

/**
 * The response to a range request. `start`: offset of the body within the file. `total`: size of the file. Both as the
 * hub states them.
 */
interface RangeAnswer {
  readonly start: number
  readonly end: number
  readonly total: number | null
  readonly body: ReadableStream<Uint8Array>
}

/**
 * Access to the hub for one caller. Each call has the timeout of the settings, and all but `openRange` retry transient
 * failures.
 */
export interface HubConnection {
  /** The JSON of an API path, and the path of the next page if there is one. */
  readonly getJson: (path: string) => Effect.Effect<{ readonly value: unknown; readonly next: string | null }, HubAnswer | HubUnavailable | Unreadable>
  /**
   * Sends one request for the bytes `from` to `to` (inclusive) of a file; without a range if `to` is null. The caller
   * must close the body. Rejects with an error of `hubFailure`. It is a promise because the body outlives it, under the
   * same signal.
   */
  readonly openRange: (url: string, from: number, to: number | null, signal: AbortSignal) => Promise<RangeAnswer>
  /**
   * Passes the bytes `from` to `to` (inclusive) of a file to a sink as they arrive, and to a new sink for each attempt.
   */
  readonly readInto: <A>(url: string, from: number, to: number, start: () => Sink<A>) => Effect.Effect<A, HubAnswer | HubUnavailable | Unreadable>
  readonly fileUrl: (repo: string, commit: string, path: string) => string
  /**
   * Number of requests of `getJson` and `readInto` that the hub's own origin has answered, including redirects and
   * refusals, excluding attempts with transient failures.
   */
  readonly sent: () => number
}

/** Maximum size of a JSON response of the hub, in bytes. */
export const maxAnswerBytes = 4 * 1024 * 1024
/** Statuses that describe a repository, a revision or a file. 416 is an empty file. */
const aboutRepository = new Set([400, 401, 403, 404, 410, 416, 451])
/** Maximum number of redirects of one request: a renamed repository, the file's location, and the storage behind it. */
const maxRedirects = 5

const unavailable = (message: string) => new HubUnavailable({ message })

/** Maps a failed response to an error. The hub's own text is omitted, because it may contain an address. */
export const failedAnswer = (status: number, headers: Headers): HubAnswer | HubUnavailable => {
  const wait = retryAfter(headers)
  const pause = wait === null ? {} : { retryAfter: wait }
  if (status === 429) return new HubUnavailable({ message: "The model hub allows no more requests for now.", ...pause })
  // Only these statuses describe a repository. Any other status comes from a proxy or from a server that is not a hub.
  if (!aboutRepository.has(status)) return new HubUnavailable({ message: `The model hub answers with status ${status}.`, ...pause })
  const disabled = headers.get("x-error-code") === "DisabledRepo" || headers.get("x-error-message") === "Access to this resource is disabled."
  return new HubAnswer({ status, code: disabled ? "DisabledRepo" : headers.get("x-error-code") })
}

const failureOf = async (response: Response): Promise<HubAnswer | HubUnavailable> => {
  await response.body?.cancel()
  return failedAnswer(response.status, response.headers)
}

/** Maps the failure of a call to an error. */
export const hubFailure = (cause: unknown): HubAnswer | HubUnavailable =>
  cause instanceof HubAnswer || cause instanceof HubUnavailable ? cause : unavailable("The model hub cannot be reached.")

const readFailure = (cause: unknown) => (cause instanceof Unreadable ? cause : hubFailure(cause))

/** `Content-Range: bytes 0-99/1234` as numbers. */
const contentRange = (header: string | null): { readonly start: number; readonly end: number; readonly total: number } | null => {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header ?? "")
  return match === null ? null : { start: Number(match[1]), end: Number(match[2]), total: Number(match[3]) }
}

/**
 * Passes the first `length` bytes of a body to a sink, which must copy the bytes that it keeps. Further bytes are
 * ignored.
 */
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
      // Release the memory now: tens of megabytes would otherwise wait for the next garbage collection.
      if (value.buffer instanceof ArrayBuffer && value.length === value.buffer.byteLength) value.buffer.transfer(0)
    }
  } finally {
    // Release the connection.
    await reader.cancel().catch(() => undefined)
  }
}

/** Reads a body of unknown length, up to the maximum size. */
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

/** The path of the next page in a `Link` header, if it is on the hub itself. */
const nextPage = (header: string | null, base: string, origin: string): string | null => {
  const target = /<([^>]{1,2000})>\s*;\s*rel="next"/.exec(header ?? "")?.[1]
  if (target === undefined || !URL.canParse(target, base)) return null
  const url = new URL(target, base)
  return url.origin === origin ? url.href.slice(base.length) : null
}

/**
 * How long transient failures are retried. `brief`: a few times within seconds. `long`: for minutes, with the pauses
 * that the hub asks for.
 */
export type Patience = "brief" | "long"

/** Connects to the hub with `token`, which is sent to the hub's own origin only. */
export const connect = (settings: HubSettings, token: Option.Option<Redacted.Redacted<string>>, patience: Patience = "brief"): HubConnection => {
  const { endpoint } = settings
  const hub = new URL(endpoint)
  const { origin } = hub
  let sent = 0

  const once = (url: URL, accept: Readonly<Record<string, string>>, signal: AbortSignal, { lookup }: Passage): Promise<Response> => {
    const headers = new Headers({ ...accept, "user-agent": "seatrial" })
    if (url.origin === origin && Option.isSome(token)) headers.set("authorization", `Bearer ${Redacted.value(token.value)}`)
    // With a proxy, the proxy resolves the host.
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
      // If the hub asks for a longer pause, the failure is returned to the caller, who may wait.
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
          if (value === undefined) throw unavailable("The model hub sends a response that is not JSON.")
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
          // A hub without range support sends the file from its start, which only serves a read from the start.
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
