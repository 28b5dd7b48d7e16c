import { Clock, Duration, Effect, Option } from "effect"
import { collect } from "./contentHash.ts"
import type { HubConnection } from "./HubConnection.ts"

/**
 * Maximum size in bytes of a cached read, and of all cached reads together. The twelve longest reads of a preview take
 * a fifth of what a repository may.
 */
const longest = 1024 * 1024
const most = 32 * 1024 * 1024

/** A temporary cache of reads of commit files, by address and range, for public repositories only. */
export interface ReadMemory {
  readonly entries: Map<string, { readonly bytes: Uint8Array; readonly until: number; readonly requests: number }>
  readonly remember: Duration.Duration
  bytes: number
}

export const makeReadMemory = (remember: Duration.Duration): ReadMemory => ({ entries: new Map(), remember, bytes: 0 })

/**
 * A connection that reuses recent reads of a commit's files, so that a preview that timed out can continue. A cached
 * read counts as the requests that it took, so the amount that is read does not depend on the cache.
 */
export const remembering = (connection: HubConnection, memory: ReadMemory): HubConnection => {
  let replayed = 0
  const { entries } = memory
  const drop = (key: string) => {
    memory.bytes -= entries.get(key)?.bytes.length ?? 0
    entries.delete(key)
  }
  return {
    ...connection,
    sent: () => connection.sent() + replayed,
    readInto: (url, from, to, start) =>
      Effect.gen(function* () {
        const size = to - from + 1
        if (size > longest) return yield* connection.readInto(url, from, to, start)
        const key = `${url} ${from}-${to}`
        const now = yield* Clock.currentTimeMillis
        const known = entries.get(key)
        if (known !== undefined && known.until > now) {
          const replay = Effect.try(() => {
            const sink = start()
            sink.push(known.bytes)
            return sink.end()
          })
          const again = yield* Effect.option(replay)
          if (Option.isSome(again)) {
            replayed += known.requests
            return again.value
          }
        }
        const before = connection.sent()
        let bytes: Uint8Array = new Uint8Array()
        const read = yield* connection.readInto(url, from, to, () => {
          const sink = start()
          const copy = collect(size)
          return {
            push: (chunk) => {
              copy.push(chunk)
              sink.push(chunk)
            },
            end: () => {
              const value = sink.end()
              bytes = copy.end()
              return value
            }
          }
        })
        drop(key)
        // Concurrent reads share the counter. This one took at least one request, and at most two if the hub redirects.
        entries.set(key, { bytes: bytes, until: now + Duration.toMillis(memory.remember), requests: Math.max(1, Math.min(2, connection.sent() - before)) })
        memory.bytes += bytes.length
        for (const oldest of entries.keys()) {
          if (memory.bytes <= most) break
          drop(oldest)
        }
        return read
      })
  }
}
