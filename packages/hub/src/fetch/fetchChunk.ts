import { Duration, Effect, Option, Redacted } from "effect"
import { contentRange } from "../contentRange.ts"
import { failedAnswer } from "../failedAnswer.ts"
import { HubAnswer, HubUnavailable, type StoreFull } from "../failures.ts"
import type { HubSettings } from "../HubSettings.ts"
import { pauseBefore } from "../pauseBefore.ts"
import { permitRedirect } from "../redirects.ts"
import { diskFailure } from "./onDisk.ts"
import type { PartFile } from "./PartFile.ts"
import type { RangeConnection } from "./RangeConnection.ts"
import type { ResponseHead } from "./ResponseHead.ts"

/** An attempt that receives less than this many bytes uses up a retry. */
const progressBytes = 1024 * 1024
const maxHops = 6
/** A connection below this many bytes per second is stalled. */
const slowest = 1024

class Differs extends Error {}
class WriteFailed extends Error {}

/** The addresses of files on the hub, and the token for it. */
export interface FileSource {
  readonly settings: HubSettings
  readonly token: Option.Option<Redacted.Redacted<string>>
  readonly fileUrl: (path: string) => string
}

const unavailable = (message: string) => new HubUnavailable({ message })

/** The same for a response with the complete file. */
const usableOfFile = (length: number, size: number, at: number, end: number): number => {
  if (length !== size) throw new Differs()
  if (at !== 0) throw unavailable("The model hub does not serve ranges of files.")
  return end
}

/** The number of body bytes in the range from `at` to before `end`. */
const usable = ({ headers, status }: ResponseHead, size: number, at: number, end: number): number => {
  const length = headers.get("content-length")
  if (headers.has("content-encoding") || length === null) throw unavailable("The model hub does not serve ranges of files.")
  if (status === 200) return usableOfFile(Number(length), size, at, end)
  const range = contentRange(headers.get("content-range"))
  if (range !== null && range.total !== size) throw new Differs()
  if (range === null || range.start !== at || range.end < at || range.end >= end) throw unavailable("The model hub returned other bytes than requested.")
  return Math.min(range.end + 1 - at, Number(length))
}

interface ChunkOptions {
  readonly connection: RangeConnection
  readonly source: FileSource
  readonly part: PartFile
  /** The first byte, and the byte after the last. */
  readonly from: number
  readonly end: number
  /** Called with the number of new bytes. */
  readonly onBytes: (bytes: number) => void
  /** Whether this download still owns the directory. */
  readonly isHeld: () => Promise<boolean>
}

interface State {
  /** Offset of the next byte in the file. */
  at: number
  /** Bytes received from the network. */
  received: number
  writing: boolean
}

/** What a request led to if it did not deliver bytes. */
interface Detour {
  redirect: URL | null
  refused: Error | null
}

/** The result of a response other than 200 and 206. Throws `Differs` for a range that the hub's file does not have. */
const detourOf = ({ headers, status }: ResponseHead, requested: URL, hub: URL, redirectHosts: ReadonlyArray<string>): Detour => {
  const location = headers.get("location")
  if (status >= 300 && status < 400 && location !== null && URL.canParse(location, requested.href)) {
    const redirect = new URL(location, requested.href)
    permitRedirect(hub, redirect, redirectHosts)
    return { redirect, refused: null }
  }
  if (status === 416) throw new Differs()
  return { redirect: null, refused: failedAnswer(status, headers) }
}

/** Writes received bytes to the part file. */
const writeReceived = async ({ isHeld, onBytes, part }: ChunkOptions, state: State, bytes: Uint8Array): Promise<void> => {
  state.writing = true
  try {
    if (!(await isHeld())) throw unavailable("Another download took over the directory of the model.")
    await part.write(bytes, state.at)
  } catch (error) {
    throw error instanceof HubUnavailable ? error : new WriteFailed("", { cause: error })
  } finally {
    state.writing = false
  }
  state.at += bytes.length
  onBytes(bytes.length)
}

/** Requests the missing bytes from `url`, and writes those that arrive. */
const requestRange = async (options: ChunkOptions, state: State, hub: URL, url: URL): Promise<Detour> => {
  const { connection, end, part, source } = options
  const { settings, token } = source
  let detour: Detour = { redirect: null, refused: null }
  await connection.get({
    url,
    ...permitRedirect(hub, url, settings.redirectHosts),
    headers: {
      "user-agent": "seatrial",
      accept: "*/*",
      "accept-encoding": "identity",
      range: `bytes=${state.at}-${end - 1}`,
      // The token is sent to the hub only.
      ...(url.origin === hub.origin && Option.isSome(token) ? { authorization: `Bearer ${Redacted.value(token.value)}` } : {})
    },
    onHead: (head) => {
      if (head.status !== 200 && head.status !== 206) {
        detour = detourOf(head, url, hub, settings.redirectHosts)
        return null
      }
      const bytes = usable(head, part.file.size, state.at, end)
      if (url !== hub) part.location = url
      return bytes
    },
    onReceived: (bytes) => {
      state.received += bytes
    },
    write: (bytes) => writeReceived(options, state, bytes)
  })
  return detour
}

/**
 * Follows the hub's redirect to the file and writes the received bytes. The signed address is reused until it is
 * refused, which means that it has expired.
 */
const receive = async (options: ChunkOptions, state: State): Promise<void> => {
  const { part, source } = options
  const hub = new URL(source.fileUrl(part.file.path))
  const knownLocation = part.location
  let url = knownLocation ?? hub
  for (let hop = 0; hop < maxHops; hop++) {
    const { redirect, refused } = await requestRange(options, state, hub, url)
    if (redirect === null && refused === null) return
    if (refused !== null) {
      part.location = null
      if (url === hub || (url.origin === hub.origin && url !== knownLocation)) throw refused
      // A refused signed address has expired, unless it is new.
      if (url !== knownLocation) throw unavailable("The file location that the model hub returned refuses the request.")
    }
    url = redirect ?? hub
  }
  throw unavailable("The model hub redirects in a circle.")
}

const failureOf = (cause: unknown): Effect.Effect<never, HubAnswer | HubUnavailable | StoreFull> => {
  if (cause instanceof WriteFailed) return diskFailure(cause.cause)
  return Effect.fail(cause instanceof HubAnswer || cause instanceof HubUnavailable ? cause : unavailable("The model hub cannot be reached."))
}

/**
 * One attempt. It ends if too little data arrives within the timeout of the settings. Waiting for a slow disk does not
 * count.
 */
const attempt = (options: ChunkOptions, state: State) => {
  const { connection, part, source } = options
  const { timeout } = source.settings
  const transfer = Effect.callback<void, HubAnswer | HubUnavailable | StoreFull>((resume) => {
    const ended = receive(options, state).then(
      () => resume(Effect.void),
      (cause: unknown) => {
        if (cause instanceof Differs) part.differs = true
        resume(cause instanceof Differs ? Effect.void : failureOf(cause))
      }
    )
    return Effect.promise(() => {
      connection.close(unavailable("The download was stopped."))
      return ended
    })
  })
  const watch = Effect.gen(function* () {
    while (true) {
      const before = state.received
      const begun = performance.now()
      yield* Effect.sleep(timeout)
      // No data could arrive if this process was blocked by its disk or suspended.
      if (performance.now() - begun > 2 * Duration.toMillis(timeout)) continue
      // The transfer then ends by itself after the received bytes are written.
      if (!state.writing && state.received - before < Math.max(1, slowest * Duration.toSeconds(timeout)))
        connection.close(unavailable("The model hub stopped in the middle of a file."))
    }
  })
  return Effect.raceFirst(transfer, watch)
}

/** Downloads a chunk of a file with as many requests as necessary, as long as they make progress. */
export const fetchChunk = Effect.fnUntraced(function* (options: ChunkOptions): Effect.fn.Return<void, HubAnswer | HubUnavailable | StoreFull> {
  const { end, from, part, source } = options
  const { downloadRetries, retryDelay } = source.settings
  const state: State = { at: from, received: 0, writing: false }
  let failures = 0
  while (state.at < end && !part.differs) {
    const before = state.at
    yield* attempt(options, state).pipe(
      Effect.catchTag("HubUnavailable", (error) => {
        failures = state.at - before >= progressBytes ? 0 : failures + 1
        if (failures > downloadRetries) return Effect.fail(error)
        return Effect.sleep(pauseBefore(retryDelay, Math.max(1, failures), error))
      })
    )
  }
})
