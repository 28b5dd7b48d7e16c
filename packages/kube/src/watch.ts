import { Cause, Duration, Effect, Exit, Option, Predicate, Random, Schema, Stream } from "effect"
import { fromStatusObject, KubeError } from "./KubeError.ts"
import type { KubeSettings, KubeTransport } from "./KubeTransport.ts"
import { kubeMetrics } from "./metrics.ts"
import { monotonicMillis } from "./monotonicMillis.ts"
import { type KubeObject, pathOf, type Resource, type Selection, toKey } from "./Resource.ts"
import { type Unreadable, WatchEvent } from "./WatchEvent.ts"

/** Much larger than any object. A longer line is an error and is not buffered. */
const maxLineLength = 64 * 1024 * 1024

/** Number of consecutive denials, after access had been granted, before the watch fails. */
const maxConsecutiveDenials = 5

export interface Listed<A> {
  readonly items: ReadonlyArray<A>
  /** Objects that do not match their schema. */
  readonly unreadable: ReadonlyArray<Unreadable>
  readonly resourceVersion: string
}

/**
 * Decodes an object without `managedFields`. No code reads them, and a write without them leaves the stored ones
 * unchanged.
 */
export const decoderOf = <A extends KubeObject>(resource: Resource<A>): ((input: unknown) => Exit.Exit<A, Schema.SchemaError>) => {
  const decode = Schema.decodeUnknownExit(resource.schema)
  return (input) => {
    if (Predicate.hasProperty(input, "metadata") && Predicate.isObject(input.metadata)) Reflect.deleteProperty(input.metadata, "managedFields")
    return decode(input)
  }
}

const decodeVersion = Schema.decodeUnknownOption(Schema.Struct({ metadata: Schema.Struct({ resourceVersion: Schema.String }) }))
const decodeName = Schema.decodeUnknownOption(
  Schema.Struct({ metadata: Schema.Struct({ name: Schema.String, namespace: Schema.optionalKey(Schema.String), uid: Schema.optionalKey(Schema.String) }) })
)
const decodeLine = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ type: Schema.String, object: Schema.Unknown })))

/**
 * Logs that an object was skipped because it does not match its schema, and returns its identity if that can be read.
 */
export const logUndecodable = Effect.fnUntraced(function* (resource: Resource<KubeObject>, input: unknown, cause: Cause.Cause<Schema.SchemaError>) {
  const { name, namespace, uid }: Partial<KubeObject["metadata"]> = Option.getOrUndefined(decodeName(input))?.metadata ?? {}
  const shown = `${namespace === undefined ? "" : `${namespace}/`}${name ?? "(unnamed)"}`
  yield* Effect.logWarning(`skipped ${resource.kind} ${shown}: it does not match its schema; its last valid state is kept`, cause)
  const identity: ReadonlyArray<Unreadable> = name === undefined ? [] : [{ key: toKey(name, namespace), uid }]
  return identity
})

interface State {
  /** The version at which the next watch starts; undefined: it starts with a list. */
  resourceVersion: string | undefined
  synced: boolean
  failures: number
  refusals: number
  relistAt: number
  heardAt: number
}

/** The list-and-watch of one kind. See `KubeClient.watch` for its guarantees. */
export const watchResource = <A extends KubeObject>(
  transport: KubeTransport,
  settings: KubeSettings,
  list: Effect.Effect<Listed<A>, KubeError>,
  resource: Resource<A>,
  selection: Selection
): Stream.Stream<WatchEvent<A>, KubeError> => {
  const decode = decoderOf(resource)
  const idle = Duration.toMillis(settings.watchIdle)
  const kind = { group: resource.group, resource: resource.plural, namespace: selection.namespace ?? "" }
  const what = `${resource.plural}${selection.namespace === undefined ? "" : ` in ${selection.namespace}`}`

  const relist = (state: State) =>
    Effect.gen(function* () {
      const listed = yield* list
      yield* kubeMetrics.lists.update(kind, 1)
      const now = yield* monotonicMillis
      state.relistAt = now + Duration.toMillis(settings.relistEvery) * (0.8 + 0.4 * (yield* Random.next))
      state.resourceVersion = listed.resourceVersion
      state.heardAt = now
      state.synced = true
      state.refusals = 0
      return WatchEvent.Synced({ items: listed.items, unreadable: listed.unreadable })
    })

  /** One watch request from opening to end. */
  const follow = (state: State, resourceVersion: string) =>
    Effect.gen(function* () {
      const openedAt = yield* monotonicMillis
      const response = yield* transport.open({
        method: "GET",
        path: pathOf(resource, selection.namespace),
        query: {
          watch: true,
          allowWatchBookmarks: true,
          resourceVersion,
          timeoutSeconds: yield* Random.nextIntBetween(300, 600),
          labelSelector: selection.labelSelector,
          fieldSelector: selection.fieldSelector
        }
      })
      response.setEncoding("utf8")
      // Iterating pauses the socket while the consumer is busy, so the only buffer is the kernel's.
      const chunks: AsyncIterator<unknown> = response[Symbol.asyncIterator]()
      let partial = ""
      let heard = false
      let failure: KubeError | undefined

      const read = Effect.fnUntraced(function* (line: string) {
        const decoded = Option.getOrUndefined(decodeLine(line))
        if (decoded === undefined) return yield* new KubeError({ reason: "Retryable", message: `the watch of ${what} sent a line that is not an event` })
        if (decoded.type === "ERROR") {
          // The server cannot continue from this version, so the next watch must list again.
          state.resourceVersion = undefined
          return yield* fromStatusObject(decoded.object)
        }
        const version = Option.getOrUndefined(decodeVersion(decoded.object))?.metadata.resourceVersion
        heard = true
        state.failures = 0
        state.refusals = 0
        if (version !== undefined) state.resourceVersion = version
        if (decoded.type === "BOOKMARK") return undefined
        const object = decode(decoded.object)
        if (Exit.isFailure(object)) {
          const [unreadable] = yield* logUndecodable(resource, decoded.object, object.cause)
          return decoded.type === "DELETED" && unreadable !== undefined ? WatchEvent.RemovedUnreadable(unreadable) : undefined
        }
        return decoded.type === "DELETED" ? WatchEvent.Removed({ object: object.value }) : WatchEvent.Changed({ object: object.value })
      })

      const ended = Effect.gen(function* () {
        const now = yield* monotonicMillis
        if (now >= state.relistAt) state.resourceVersion = undefined
        const brief = now - openedAt < 1000
        if (heard || !brief) {
          state.failures = 0
          // Pause before the next request if the server ends every watch early.
          if (brief) yield* Effect.sleep(settings.backoff)
          return yield* Cause.done()
        }
        return yield* new KubeError({ reason: "Retryable", message: `the watch of ${what} was closed immediately after it was opened` })
      })

      return Stream.fromPull(
        Effect.succeed(
          Effect.gen(function* () {
            while (true) {
              if (failure !== undefined) return yield* failure
              const next = yield* Effect.tryPromise({
                try: () => chunks.next(),
                catch: () => new KubeError({ reason: "Retryable", message: `the watch of ${what} was cut off` })
              }).pipe(Effect.timeoutOption(idle))
              if (Option.isNone(next) || next.value.done === true) return yield* ended
              state.heardAt = yield* monotonicMillis
              const lines = (partial + String(next.value.value)).split("\n")
              partial = lines.pop() ?? ""
              if (partial.length > maxLineLength)
                return yield* new KubeError({ reason: "Retryable", message: `the watch of ${what} sent a line that is too long` })
              const events: Array<WatchEvent<A>> = []
              for (const line of lines) {
                if (line === "") continue
                const event = yield* Effect.result(read(line))
                if (event._tag === "Failure") {
                  failure = event.failure
                  break
                }
                if (event.success !== undefined) events.push(event.success)
              }
              const [first, ...rest] = events
              if (first !== undefined) return [first, ...rest] as const
            }
          })
        )
      )
    })

  /** Waits as long as the failure requires. Fails if waiting cannot help. */
  const recover = Effect.fnUntraced(function* (state: State, error: KubeError) {
    const first = state.failures === 0
    state.failures += 1
    if (error.reason === "Gone") {
      state.resourceVersion = undefined
      yield* Effect.logDebug(`the watch of ${what} expired and lists again`)
      if (first) return
    } else if (error.reason === "Denied" || error.reason === "NotFound" || error.reason === "Invalid") {
      state.resourceVersion = undefined
      state.refusals += 1
      if (!state.synced || state.refusals >= maxConsecutiveDenials) return yield* error
    }
    const base = Duration.toMillis(settings.backoff) * 2 ** Math.min(state.failures - 1, 20)
    const jittered = Math.min(base, Duration.toMillis(settings.maxBackoff)) * (0.5 + 0.5 * (yield* Random.next))
    // At most five minutes for any `Retry-After`, plus up to 10%, so that not all watches return at once.
    const requestedDelay = Math.min(error.retryAfter ?? 0, 300_000) * (1 + 0.1 * (yield* Random.next))
    const delay = Math.max(jittered, requestedDelay)
    if (error.reason !== "Gone") yield* Effect.logWarning(`the watch of ${what} failed and will be retried in ${Math.round(delay)} ms: ${error.message}`)
    yield* Effect.sleep(delay)
  })

  return Stream.unwrap(
    Effect.gen(function* () {
      const state: State = {
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
        state.resourceVersion === undefined ? Stream.fromEffect(relist(state)) : Stream.unwrap(follow(state, state.resourceVersion))
      ).pipe(
        Stream.catch((error) => Stream.fromEffectDrain(recover(state, error))),
        Stream.forever
      )
    })
  )
}
