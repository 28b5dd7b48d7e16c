import { monotonicMillis } from "@seatrial/domain"
import { Duration, Effect, Predicate, Random, Stream } from "effect"
import { decoderOf } from "./decodeObject.ts"
import { followWatch, type Watched, type WatchState } from "./followWatch.ts"
import type { KubeError } from "./KubeError.ts"
import type { KubeSettings, KubeTransport } from "./KubeTransport.ts"
import { kubeMetrics } from "./metrics.ts"
import type { KubeObject, Resource, Selection } from "./Resource.ts"
import { type Unreadable, WatchEvent } from "./WatchEvent.ts"

/**
 * Number of consecutive denials, after access had been granted, before the watch fails. A missing kind does not count.
 */
const maxConsecutiveDenials = 5

export interface Listed<A> {
  readonly items: ReadonlyArray<A>
  /** Objects that do not match their schema. */
  readonly unreadable: ReadonlyArray<Unreadable>
  readonly resourceVersion: string
}

/** Lists all objects, and sets the version at which the next watch starts. */
const relist = Effect.fnUntraced(function* <A>(settings: KubeSettings, list: Effect.Effect<Listed<A>, KubeError>, state: WatchState) {
  const listed = yield* list
  const now = yield* monotonicMillis
  state.relistAt = now + Duration.toMillis(settings.relistEvery) * (0.8 + 0.4 * (yield* Random.next))
  state.resourceVersion = listed.resourceVersion
  state.heardAt = now
  state.synced = true
  state.refusals = 0
  return WatchEvent.Synced({ items: listed.items, unreadable: listed.unreadable })
})

/** Reasons that waiting cannot remove, unless access was granted before. */
const denials: ReadonlySet<KubeError["reason"]> = new Set(["Denied", "NotFound", "Invalid"])

/** Milliseconds to wait after a failure: the back-off, or what the server asks for if that is longer. */
const delayAfter = Effect.fnUntraced(function* ({ backoff, maxBackoff }: KubeSettings, failures: number, { retryAfter = 0 }: KubeError) {
  const base = Duration.toMillis(backoff) * 2 ** Math.min(failures - 1, 20)
  const jittered = Math.min(base, Duration.toMillis(maxBackoff)) * (0.5 + 0.5 * (yield* Random.next))
  // At most five minutes for any `Retry-After`, plus up to 10%, so that not all watches return at once.
  const requestedDelay = Math.min(retryAfter, 300_000) * (1 + 0.1 * (yield* Random.next))
  return Math.max(jittered, requestedDelay)
})

/** Waits as long as the failure requires. Fails if waiting cannot help. */
const recover = Effect.fnUntraced(function* (settings: KubeSettings, name: string, state: WatchState, error: KubeError) {
  const isFirst = state.failures === 0
  const isExpired = error.reason === "Gone"
  state.failures += 1
  if (isExpired) {
    state.resourceVersion = undefined
    yield* Effect.logDebug(`the watch of ${name} expired and lists again`)
    if (isFirst) return
  } else if (denials.has(error.reason)) {
    state.resourceVersion = undefined
    state.refusals += 1
    // A definition that was deleted may be applied again.
    const mayReturn = error.reason === "NotFound" || state.refusals < maxConsecutiveDenials
    if (!state.synced || !mayReturn) return yield* error
  }
  const delay = yield* delayAfter(settings, state.failures, error)
  if (!isExpired) yield* Effect.logWarning(`the watch of ${name} failed and will be retried in ${Math.round(delay)} ms: ${error.message}`)
  yield* Effect.sleep(delay)
})

/** The list-and-watch of one kind. See `KubeClient.watch` for its guarantees. */
export const watchResource = <A extends KubeObject>(
  transport: KubeTransport,
  settings: KubeSettings,
  list: Effect.Effect<Listed<A>, KubeError>,
  resource: Resource<A>,
  selection: Selection
): Stream.Stream<WatchEvent<A>, KubeError> => {
  const name = `${resource.plural}${selection.namespace === undefined ? "" : ` in ${selection.namespace}`}`
  const watched: Watched<A> = { transport, settings, resource, selection, decode: decoderOf(resource), name }
  const kind = { group: resource.group, resource: resource.plural, namespace: selection.namespace ?? "" }
  const countedList = Effect.tap(list, kubeMetrics.lists.update(kind, 1))
  return Stream.unwrap(
    Effect.gen(function* () {
      const state: WatchState = {
        resourceVersion: undefined,
        synced: false,
        failures: 0,
        refusals: 0,
        relistAt: 0,
        heardAt: yield* monotonicMillis
      }
      const labels = { ...kind, selector: [selection.labelSelector, selection.fieldSelector].filter(Predicate.isNotUndefined).join(";") }
      yield* Effect.addFinalizer(() => kubeMetrics.lastEventAge.remove(labels))
      yield* monotonicMillis.pipe(
        Effect.flatMap((now) => kubeMetrics.lastEventAge.update(labels, (now - state.heardAt) / 1000)),
        Effect.andThen(Effect.sleep("10 seconds")),
        Effect.forever,
        Effect.forkScoped
      )
      return Stream.suspend(() =>
        state.resourceVersion === undefined
          ? Stream.fromEffect(relist(settings, countedList, state))
          : Stream.unwrap(followWatch(watched, state, state.resourceVersion))
      ).pipe(
        Stream.catch((error) => Stream.fromEffectDrain(recover(settings, name, state, error))),
        Stream.forever
      )
    })
  )
}
