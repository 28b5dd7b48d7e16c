import { constants, type FileHandle, open, rename } from "node:fs/promises"
import type { RepositoryFile } from "@seatrial/domain"
import { Duration, Effect } from "effect"
import { expectedHash, startHash } from "../contentHash.ts"
import { type HubAnswer, HubUnavailable } from "../failures.ts"
import { type HubConnection, hubFailure } from "../HubConnection.ts"
import type { HubSettings } from "../HubSettings.ts"
import { onDisk } from "./onDisk.ts"

/** Bytes that one request asks for at most: a long download does not hang on one connection. */
const pieceBytes = 256 * 1024 * 1024
/** Progress that counts as such: an attempt that brought less uses up one of the retries. */
const progressBytes = 1024 * 1024
/** Longest pause that a hub may ask for between two requests, in milliseconds. */
const longestPause = 60_000

export interface Download {
  readonly connection: HubConnection
  readonly settings: HubSettings
  readonly url: string
  readonly file: RepositoryFile
  /** Where the verified file goes; beside it, with `.part`, is what has come so far. */
  readonly target: string
  /** Told of bytes that are now there, and, as a negative number, of bytes that have to come again. */
  readonly onBytes: (bytes: number) => Effect.Effect<void>
}

const writeAll = async (handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> => {
  let written = 0
  while (written < bytes.length) written += (await handle.write(bytes, written, bytes.length - written, position + written)).bytesWritten
}

/** The file's state on disk and the hash of what is there. */
interface Received {
  readonly handle: FileHandle
  hash: ReturnType<typeof startHash>
  at: number
}

/** Hashes what an earlier download left; a file that is too long starts anew. */
const resume = Effect.fnUntraced(function* (handle: FileHandle, file: RepositoryFile) {
  const received: Received = { handle, hash: startHash(file), at: 0 }
  const { size } = yield* onDisk(() => handle.stat())
  if (size > file.size) yield* onDisk(() => handle.truncate(0))
  else {
    const buffer = new Uint8Array(Math.min(size, progressBytes))
    while (received.at < size) {
      const { bytesRead } = yield* onDisk(() => handle.read(buffer, 0, Math.min(buffer.length, size - received.at), received.at))
      if (bytesRead === 0) break
      received.hash.update(buffer.subarray(0, bytesRead))
      received.at += bytesRead
    }
  }
  return received
})

const restart = Effect.fnUntraced(function* (received: Received, { file, onBytes }: Download) {
  yield* onDisk(() => received.handle.truncate(0))
  yield* onBytes(-received.at)
  received.hash = startHash(file)
  received.at = 0
})

/** Asks once for the next piece and writes what comes. `false`: the hub's file has another size than the commit's. */
const receive = Effect.fnUntraced(function* (received: Received, download: Download) {
  const { connection, file, onBytes, settings, url } = download
  const inTime = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.timeoutOrElse(effect, {
      duration: settings.timeout,
      orElse: () => Effect.fail(new HubUnavailable({ message: "The model hub stopped in the middle of a file." }))
    })
  const controller = yield* Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (controller) => Effect.sync(() => controller.abort())
  )
  const last = Math.min(received.at + pieceBytes, file.size) - 1
  const answer = yield* Effect.tryPromise({ try: () => connection.openRange(url, received.at, last, controller.signal), catch: hubFailure }).pipe(inTime)
  if (answer.total !== null && answer.total !== file.size) return false
  if (answer.start !== received.at) yield* restart(received, download)
  const end = Math.min(answer.end + 1, file.size)
  const reader = answer.body.getReader()
  while (received.at < end) {
    const { done, value } = yield* Effect.tryPromise({ try: () => reader.read(), catch: hubFailure }).pipe(inTime)
    if (done) return yield* new HubUnavailable({ message: "The model hub ended a file early." })
    const bytes = value.subarray(0, end - received.at)
    yield* onDisk(() => writeAll(received.handle, bytes, received.at))
    received.hash.update(bytes)
    received.at += bytes.length
    yield* onBytes(bytes.length)
  }
  return true
}, Effect.scoped)

/** Brings the rest of the file, over as many requests as it takes while they bring something. `false` as for `receive`. */
const complete = Effect.fnUntraced(function* (received: Received, download: Download) {
  const { file, settings } = download
  let failures = 0
  while (received.at < file.size) {
    const before = received.at
    const outcome = yield* receive(received, download).pipe(
      Effect.catchTag("HubUnavailable", (error) => {
        failures = received.at - before >= progressBytes ? 0 : failures + 1
        if (failures > settings.retries) return Effect.fail(error)
        const pause = error.retryAfter ?? Duration.toMillis(settings.retryDelay) * 2 ** Math.max(0, failures - 1)
        return Effect.as(Effect.sleep(Math.min(pause, longestPause)), true)
      })
    )
    if (!outcome) return false
  }
  return true
})

/**
 * Brings one file of a commit to `target`, going on where an earlier attempt stopped. It is there only when its hash is the commit's.
 * `false`: two downloads of it had other bytes than the commit lists.
 */
export const downloadFile = Effect.fnUntraced(function* (download: Download): Effect.fn.Return<boolean, HubAnswer | HubUnavailable> {
  const { file, target, onBytes } = download
  const part = `${target}.part`
  const matches = yield* Effect.gen(function* () {
    const handle = yield* Effect.acquireRelease(
      onDisk(() => open(part, constants.O_RDWR | constants.O_CREAT, 0o644)),
      (handle) => Effect.promise(() => handle.close())
    )
    const received = yield* resume(handle, file)
    yield* onBytes(received.at)
    for (let attempt = 0; attempt < 2; attempt++) {
      if ((yield* complete(received, download)) && received.hash.digest("hex") === expectedHash(file)) {
        yield* onDisk(() => handle.sync())
        return true
      }
      yield* restart(received, download)
    }
    return false
  }).pipe(Effect.scoped)
  if (matches) yield* onDisk(() => rename(part, target))
  return matches
})
