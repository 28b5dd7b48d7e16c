import { Clock, Duration, Effect, Option } from "effect"
import { collect } from "./contentHash.ts"
import type { HubConnection } from "./HubConnection.ts"

/** Longest read that is remembered, and all of them together, in bytes: a preview's twelve at their longest cost a fifth of what a repository may. */
const longest = 1024 * 1024
const most = 32 * 1024 * 1024

/** What was read of the files of commits, by address and range, for a while: only of repositories that everybody may read. */
export interface ReadMemory {
  readonly entries: Map<string, { readonly bytes: Uint8Array; readonly until: number; readonly requests: number }>
  readonly remember: Duration.Duration
  bytes: number
}

export const makeReadMemory = (remember: Duration.Duration): ReadMemory => ({ entries: new Map(), remember, bytes: 0 })

/**
 * A connection that does not ask again for what came of a commit's files lately, so that a preview which ran out of time goes on where it was. What is remembered
 * counts as the requests that it took, so that as much is read as if all of it were asked for.
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
        let kept: Uint8Array = new Uint8Array()
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
              kept = copy.end()
              return value
            }
          }
        })
        drop(key)
        // Others are read meanwhile: of what they took one is this one's at least, and two at most of a hub that sends files from elsewhere.
        entries.set(key, { bytes: kept, until: now + Duration.toMillis(memory.remember), requests: Math.max(1, Math.min(2, connection.sent() - before)) })
        memory.bytes += kept.length
        for (const oldest of entries.keys()) {
          if (memory.bytes <= most) break
          drop(oldest)
        }
        return read
      })
  }
}
