import type { PgClient } from "@effect/sql-pg"
import { Effect, Stream } from "effect"
import type { KeyCache } from "../KeyCache.ts"
import { listen } from "../listen.ts"
import type { AdmittedCallers } from "./AdmittedCallers.ts"
import type { KeyFingerprints } from "./KeyFingerprints.ts"

interface KeyMemory {
  readonly admitted: AdmittedCallers
  readonly cache: KeyCache
  readonly fingerprints: KeyFingerprints
  readonly loadFingerprints: Effect.Effect<void>
}

/** Applies the changes of keys and organizations of every process to the memory of this one. */
export const followKeys = (sql: PgClient.PgClient, { admitted, cache, fingerprints, loadFingerprints }: KeyMemory) =>
  listen(sql, "api_keys").pipe(
    Stream.runForEach(
      Effect.fnUntraced(function* (event) {
        if (event._tag === "Notified") {
          fingerprints.applyNotification(event.payload)
          cache.forget(event.payload)
          return admitted.changed(event.payload)
        }
        const isListening = event._tag === "Listening"
        // Without notifications, revocations are missed, so nothing may be cached.
        cache.setTrusted(isListening)
        // Keys may have been created since the last notification.
        if (!isListening) return
        admitted.changed(null)
        yield* Effect.forkScoped(loadFingerprints)
      })
    ),
    Effect.forkScoped
  )
