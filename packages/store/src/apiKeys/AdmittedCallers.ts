import { Clock, Effect, Queue, Schedule, type Scope } from "effect"
import type { Caller } from "../ApiKeys.ts"
import { makeOutageLog } from "../outageLog.ts"

/** The secret that a caller authenticated with. */
interface Credential {
  readonly sha256: string
  /** Unix milliseconds; null: it does not expire. */
  expiresAt: number | null
}

export interface AdmittedCallersOptions {
  /** When the secret expires, Unix milliseconds, or null for never; undefined if it is not valid. */
  readonly findExpiry: (sha256: string, now: number) => Effect.Effect<number | null | undefined>
  /** Whether the cached caller is as new as the last notification. */
  readonly isCurrent: (sha256: string, caller: Caller) => boolean
}

/** Interval at which expiries are compared with the clock. */
const expiryInterval = "1 second"

/** Maximum number of credentials that are looked up concurrently after a notification. */
const atOnce = 4

/**
 * The callers with requests in progress. Each is looked up again when a notification names its key or organization, or
 * when notifications may have been lost: one query for each secret, regardless of its number of requests. Expiries need
 * no query.
 */
export class AdmittedCallers {
  readonly #credentials = new WeakMap<Caller, Credential>()
  readonly #watchers = new Map<Caller, Set<() => void>>()
  readonly #changed: Queue.Queue<string | null>
  readonly #options: AdmittedCallersOptions
  readonly #log = makeOutageLog("Could not look up the API key of running requests; retrying")

  private constructor(changed: Queue.Queue<string | null>, options: AdmittedCallersOptions) {
    this.#changed = changed
    this.#options = options
  }

  static readonly make = Effect.fnUntraced(function* (options: AdmittedCallersOptions): Effect.fn.Return<AdmittedCallers, never, Scope.Scope> {
    const callers = new AdmittedCallers(yield* Queue.unbounded<string | null>(), options)
    yield* Effect.forkScoped(Effect.forever(callers.#recheckChanged))
    yield* Effect.forkScoped(Effect.repeat(callers.#endExpired, Schedule.spaced(expiryInterval)))
    return callers
  })

  /** Adds a caller that was looked up. */
  add(caller: Caller, sha256: string, expiresAt: number | null): void {
    this.#credentials.set(caller, { sha256, expiresAt })
  }

  /**
   * Calls `onEnd` once when the caller's secret is no longer valid. Call the returned function when the request has
   * ended.
   */
  watch(caller: Caller, onEnd: () => void): () => void {
    const watchers = this.#watchers.get(caller)
    if (watchers === undefined) this.#watchers.set(caller, new Set([onEnd]))
    else watchers.add(onEnd)
    const credential = this.#credentials.get(caller)
    // A notification may have arrived since the query.
    if (credential !== undefined && !this.#options.isCurrent(credential.sha256, caller)) this.changed(caller.keyId)
    return () => this.#forget(caller, onEnd)
  }

  /** The key or organization with that ID has changed; null: any of them may have changed. */
  changed(id: string | null): void {
    for (const { keyId, orgId } of this.#watchers.keys()) {
      if (id !== null && id !== keyId && id !== orgId) continue
      Queue.offerUnsafe(this.#changed, id)
      return
    }
  }

  #forget(caller: Caller, onEnd: () => void) {
    const watchers = this.#watchers.get(caller)
    if (watchers === undefined) return
    watchers.delete(onEnd)
    if (watchers.size === 0) this.#watchers.delete(caller)
  }

  #end(caller: Caller) {
    const watchers = this.#watchers.get(caller)
    this.#watchers.delete(caller)
    for (const onEnd of watchers ?? []) onEnd()
  }

  readonly #recheckChanged = Effect.suspend(() => Queue.takeAll(this.#changed)).pipe(
    Effect.flatMap((ids) => {
      const secrets = new Set<string>()
      for (const caller of this.#watchers.keys()) {
        const credential = this.#credentials.get(caller)
        if (credential !== undefined && (ids.includes(null) || ids.includes(caller.keyId) || ids.includes(caller.orgId))) secrets.add(credential.sha256)
      }
      return Effect.forEach(secrets, (sha256) => this.#recheck(sha256), { concurrency: atOnce, discard: true })
    })
  )

  #recheck(sha256: string): Effect.Effect<void> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => this.#options.findExpiry(sha256, now)).pipe(
      Effect.tapCause(this.#log),
      Effect.sandbox,
      Effect.retry(Schedule.spaced("1 second")),
      Effect.orDie,
      Effect.map((expiresAt) => this.#apply(sha256, expiresAt))
    )
  }

  #apply(sha256: string, expiresAt: number | null | undefined): void {
    for (const caller of [...this.#watchers.keys()]) {
      const credential = this.#credentials.get(caller)
      if (credential?.sha256 !== sha256) continue
      if (expiresAt === undefined) this.#end(caller)
      else credential.expiresAt = expiresAt
    }
  }

  readonly #endExpired = Effect.map(Clock.currentTimeMillis, (now) => {
    for (const caller of [...this.#watchers.keys()]) {
      const expiresAt = this.#credentials.get(caller)?.expiresAt ?? null
      if (expiresAt !== null && expiresAt <= now) this.#end(caller)
    }
  })
}
