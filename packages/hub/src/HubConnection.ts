import { Effect, type Option, type Redacted } from "effect"
import { parseJson } from "./boundedJson.ts"
import { contentRange } from "./contentRange.ts"
import { HubAnswer, HubUnavailable, Unreadable } from "./failures.ts"
import type { HubSettings } from "./HubSettings.ts"
import { makeSend, type Send } from "./makeSend.ts"
import { type Patience, retryHub } from "./retryHub.ts"
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
const unavailable = (message: string) => new HubUnavailable({ message })

/** Maps the failure of a call to an error. */
export const hubFailure = (cause: unknown): HubAnswer | HubUnavailable =>
  cause instanceof HubAnswer || cause instanceof HubUnavailable ? cause : unavailable("The model hub cannot be reached.")

const readFailure = (cause: unknown) => (cause instanceof Unreadable ? cause : hubFailure(cause))

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
    if (length > maxAnswerBytes)
      throw new Unreadable({ reason: `The model hub's description of the repository is longer than the limit of ${maxAnswerBytes} bytes.` })
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

/** The response to a range request, and the number of requests that the hub answered for it. */
interface CountedRange extends RangeAnswer {
  readonly requests: number
}

/** The range of a response without `Content-Range`: the complete file. */
const completeRange = ({ headers }: Response, body: ReadableStream<Uint8Array>): RangeAnswer => {
  const length = headers.has("content-encoding") ? null : headers.get("content-length")
  const total = length === null ? null : Number(length)
  return { start: 0, end: total === null ? Number.MAX_SAFE_INTEGER : total - 1, total, body }
}

/** The range of a partial response; null if it is not the requested one. */
const partialRange = ({ headers }: Response, body: ReadableStream<Uint8Array>, from: number, to: number | null): RangeAnswer | null => {
  const range = contentRange(headers.get("content-range"))
  const isPlain = (headers.get("content-encoding") ?? "identity") === "identity"
  if (range === null || !isPlain || range.start !== from || (to !== null && range.end > to)) return null
  return { ...range, body }
}

const openRange = async (send: Send, url: string, from: number, to: number | null, signal: AbortSignal): Promise<CountedRange> => {
  const { requests, response } = await send(url, { "accept-encoding": "identity", ...(to === null ? {} : { range: `bytes=${from}-${to}` }) }, signal)
  const { body } = response
  if (body === null) throw unavailable("The model hub sent an empty answer.")
  const range = response.status === 206 ? partialRange(response, body, from, to) : completeRange(response, body)
  if (range !== null) return { ...range, requests }
  await body.cancel()
  throw unavailable("The model hub returned other bytes than requested.")
}

/** Connects to the hub with `token`, which is sent to the hub's own origin only. */
export const connect = (settings: HubSettings, token: Option.Option<Redacted.Redacted<string>>, patience: Patience = "brief"): HubConnection => {
  const { endpoint } = settings
  const { origin } = new URL(endpoint)
  let sent = 0
  const send = makeSend(settings, token, (requests) => {
    sent += requests
  })
  const retried = retryHub(settings, patience)
  const call = <A>(run: (signal: AbortSignal) => Promise<A>) =>
    Effect.tryPromise({ try: run, catch: readFailure }).pipe(
      Effect.timeoutOrElse({ duration: settings.timeout, orElse: () => Effect.fail(unavailable("The model hub does not answer in time.")) }),
      retried
    )

  return {
    getJson: (path) =>
      call(async (signal) => {
        const { requests, response } = await send(`${endpoint}${path}`, { accept: "application/json" }, signal)
        const value = parseJson(await readAnswer(response.body))
        if (value === undefined) throw unavailable("The model hub sent a response that is not JSON.")
        sent += requests
        return { value, next: nextPage(response.headers.get("link"), endpoint, origin) }
      }),
    openRange: (url, from, to, signal) => openRange(send, url, from, to, signal),
    readInto: (url, from, to, start) =>
      call(async (signal) => {
        const answer = await openRange(send, url, from, to, signal)
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
      }),
    fileUrl: (repo, commit, path) => `${endpoint}/${repo}/resolve/${commit}/${encodeURIComponent(path)}`,
    sent: () => sent
  }
}
