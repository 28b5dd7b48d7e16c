import { Duration, Effect, Option, Redacted, Schedule } from "effect"
import { HubAnswer, HubUnavailable } from "./failures.ts"
import type { HubSettings } from "./HubSettings.ts"

/** What `@huggingface/hub` takes in each of its calls. */
interface LibraryParams {
  readonly hubUrl: string
  readonly fetch: typeof fetch
}

/** An answer to a ranged read: `start` is where its body begins within the file, `total` the file's size, both as the hub stated them. */
interface RangeAnswer {
  readonly start: number
  readonly end: number
  readonly total: number | null
  readonly body: ReadableStream<Uint8Array>
}

/** One caller's way to the hub. Each call is cut off by the settings' time-out. */
export interface HubConnection {
  /** A call of `@huggingface/hub`, sent again where it failed in passing. */
  readonly library: <A>(call: (params: LibraryParams) => Promise<A>) => Effect.Effect<A, HubAnswer | HubUnavailable>
  /**
   * Sends one request for the bytes `from` to `to` (inclusive) of a file; `to` null asks without a range, for the whole. Closing the body is the caller's.
   * Rejects with what `hubFailure` names. It is a promise because its body outlives it, under the same signal.
   */
  readonly openRange: (url: string, from: number, to: number | null, signal: AbortSignal) => Promise<RangeAnswer>
  /** The bytes `from` to `to` (inclusive) of a file, sent again where it failed in passing. */
  readonly readRange: (url: string, from: number, to: number) => Effect.Effect<Uint8Array, HubAnswer | HubUnavailable>
  readonly fileUrl: (repo: string, commit: string, path: string) => string
}

/** Largest answer that is taken from the hub's JSON interface, in bytes. */
const maxAnswerBytes = 10 * 1024 * 1024

const unavailable = (message: string) => new HubUnavailable({ message })

const retryAfter = (header: string | null): { readonly retryAfter?: number } => {
  const seconds = Number(header)
  return header !== null && Number.isFinite(seconds) && seconds >= 0 ? { retryAfter: Math.ceil(seconds * 1000) } : {}
}

/** A failed answer as an error of ours. The hub's own text is not repeated: it may hold an address. */
const refuse = async (response: Response): Promise<never> => {
  await response.body?.cancel()
  const { status } = response
  if (status === 429)
    throw new HubUnavailable({ message: "The model hub allows no more requests for now.", ...retryAfter(response.headers.get("retry-after")) })
  if (status >= 500 || status === 408)
    throw new HubUnavailable({ message: `The model hub answers with status ${status}.`, ...retryAfter(response.headers.get("retry-after")) })
  throw new HubAnswer({ status, code: response.headers.get("x-error-code") })
}

/** What went wrong in a call to the hub. */
export const hubFailure = (cause: unknown): HubAnswer | HubUnavailable => {
  if (cause instanceof HubAnswer || cause instanceof HubUnavailable) return cause
  if (cause instanceof SyntaxError) return unavailable("The model hub answers with something that is not JSON.")
  return unavailable("The model hub cannot be reached.")
}

const bounded = (body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> => {
  let seen = 0
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        seen += chunk.length
        if (seen > maxAnswerBytes) controller.error(unavailable("The model hub's answer is too large."))
        else controller.enqueue(chunk)
      }
    })
  )
}

/** `Content-Range: bytes 0-99/1234` as numbers. */
const contentRange = (header: string | null): { readonly start: number; readonly end: number; readonly total: number } | null => {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header ?? "")
  return match === null ? null : { start: Number(match[1]), end: Number(match[2]), total: Number(match[3]) }
}

const readAll = async (body: ReadableStream<Uint8Array>, length: number): Promise<Uint8Array> => {
  const bytes = new Uint8Array(length)
  let filled = 0
  const reader = body.getReader()
  try {
    while (filled < length) {
      const { done, value } = await reader.read()
      if (done) throw unavailable("The model hub ended an answer early.")
      const taken = value.subarray(0, length - filled)
      bytes.set(taken, filled)
      filled += taken.length
    }
    return bytes
  } finally {
    // Releases the connection; what a hub sends beyond the range is nobody's.
    await reader.cancel().catch(() => undefined)
  }
}

/** Speaks to the hub for the holder of `token`, which goes to the hub's own origin and to no other. */
export const connect = (settings: HubSettings, token: Option.Option<Redacted.Redacted<string>>): HubConnection => {
  const origin = new URL(settings.endpoint).origin

  const send = async (input: string | URL | Request, init: RequestInit | undefined, signal: AbortSignal): Promise<Response> => {
    const request = new Request(input, { ...init, signal })
    request.headers.set("user-agent", "seatrial")
    if (Option.isSome(token) && new URL(request.url).origin === origin) request.headers.set("authorization", `Bearer ${Redacted.value(token.value)}`)
    const response = await fetch(request)
    return response.ok ? response : refuse(response)
  }

  const limited = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.timeoutOrElse(effect, { duration: settings.timeout, orElse: () => Effect.fail(unavailable("The model hub does not answer in time.")) })

  const retried = <A>(effect: Effect.Effect<A, HubAnswer | HubUnavailable>) =>
    Effect.retry(effect, {
      times: settings.retries,
      schedule: Schedule.exponential(settings.retryDelay),
      // A hub that names a longer pause is believed, and left to whoever can wait.
      while: (error) => error._tag === "HubUnavailable" && (error.retryAfter ?? 0) <= Duration.toMillis(settings.retryDelay)
    })

  const openRange: HubConnection["openRange"] = async (url, from, to, signal) => {
    const response = await send(url, { headers: { "accept-encoding": "identity", ...(to === null ? {} : { range: `bytes=${from}-${to}` }) } }, signal)
    const { body } = response
    if (body === null) throw unavailable("The model hub sends an empty answer.")
    if (response.status !== 206) {
      const length = response.headers.get("content-encoding") === null ? response.headers.get("content-length") : null
      const total = length === null ? null : Number(length)
      return { start: 0, end: total === null ? Number.MAX_SAFE_INTEGER : total - 1, total, body }
    }
    const range = contentRange(response.headers.get("content-range"))
    if (range === null || range.start !== from || (to !== null && range.end > to)) {
      await body.cancel()
      throw unavailable("The model hub sends other bytes than were asked for.")
    }
    return { ...range, body }
  }

  return {
    library: (call) =>
      Effect.tryPromise({
        try: (signal) =>
          call({
            hubUrl: settings.endpoint,
            fetch: async (input, init) => {
              const response = await send(input, init, signal)
              return new Response(response.body === null ? null : bounded(response.body), { status: response.status, headers: response.headers })
            }
          }),
        catch: hubFailure
      }).pipe(limited, retried),
    openRange,
    readRange: (url, from, to) =>
      Effect.tryPromise({
        try: async (signal) => {
          const answer = await openRange(url, from, to, signal)
          // A hub that ignores ranges sends the file from its start; only a read from there is served by it.
          if (answer.start === from) return await readAll(answer.body, to - from + 1)
          await answer.body.cancel()
          throw unavailable("The model hub does not serve ranges of files.")
        },
        catch: hubFailure
      }).pipe(limited, retried),
    fileUrl: (repo, commit, path) => `${settings.endpoint}/${repo}/resolve/${commit}/${encodeURIComponent(path)}`
  }
}
