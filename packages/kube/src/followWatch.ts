import { monotonicMillis } from "@seatrial/domain"
import { Cause, Duration, Effect, Exit, Option, Random, Schema, Stream } from "effect"
import { logUndecodable } from "./decodeObject.ts"
import { fromStatusObject, KubeError } from "./KubeError.ts"
import type { KubeSettings, KubeTransport } from "./KubeTransport.ts"
import { type KubeObject, pathOf, type Resource, type Selection } from "./Resource.ts"
import { WatchEvent } from "./WatchEvent.ts"

/** Much larger than any object. A longer line is an error and is not buffered. */
const maxLineLength = 64 * 1024 * 1024

const decodeVersion = Schema.decodeUnknownOption(Schema.Struct({ metadata: Schema.Struct({ resourceVersion: Schema.String }) }))
const decodeLine = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ type: Schema.String, object: Schema.Unknown })))

/** The watched collection, and the means to watch it. */
export interface Watched<A extends KubeObject> {
  readonly transport: KubeTransport
  readonly settings: KubeSettings
  readonly resource: Resource<A>
  readonly selection: Selection
  readonly decode: (input: unknown) => Exit.Exit<A, Schema.SchemaError>
  /** For messages. */
  readonly name: string
}

/** The state of a list-and-watch between its requests. Times are in monotonic milliseconds. */
export interface WatchState {
  /** The version at which the next watch starts; undefined: it starts with a list. */
  resourceVersion: string | undefined
  synced: boolean
  failures: number
  refusals: number
  relistAt: number
  heardAt: number
}

/** One watch request. */
interface WatchRequest {
  readonly openedAt: number
  readonly chunks: AsyncIterator<unknown>
  /** The beginning of a line whose end has not arrived. */
  partial: string
  hasReceived: boolean
  /** Reported after the events that arrived before it. */
  failure: KubeError | undefined
}

const openRequest = Effect.fnUntraced(function* <A extends KubeObject>({ resource, selection, transport }: Watched<A>, resourceVersion: string) {
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
  const request: WatchRequest = { openedAt, chunks: response[Symbol.asyncIterator](), partial: "", hasReceived: false, failure: undefined }
  return request
})

const retryable = ({ name }: Pick<Watched<KubeObject>, "name">, problem: string) =>
  new KubeError({ reason: "Retryable", message: `the watch of ${name} ${problem}` })

/** The event of an object that was read; undefined if it does not match its schema. */
const eventOf = Effect.fnUntraced(function* <A extends KubeObject>({ decode, resource }: Watched<A>, type: string, input: unknown) {
  const object = decode(input)
  if (Exit.isSuccess(object)) return type === "DELETED" ? WatchEvent.Removed({ object: object.value }) : WatchEvent.Changed({ object: object.value })
  const [unreadable] = yield* logUndecodable(resource, input, object.cause)
  return type === "DELETED" && unreadable !== undefined ? WatchEvent.RemovedUnreadable(unreadable) : undefined
})

/** Reads one line of a watch; undefined if it has no event for the consumer. */
const readLine = Effect.fnUntraced(function* <A extends KubeObject>(watched: Watched<A>, state: WatchState, request: WatchRequest, line: string) {
  const decoded = Option.getOrUndefined(decodeLine(line))
  if (decoded === undefined) return yield* retryable(watched, "sent a line that is not an event")
  if (decoded.type === "ERROR") {
    // The server cannot continue from this version, so the next watch must list again.
    state.resourceVersion = undefined
    return yield* fromStatusObject(decoded.object)
  }
  const version = Option.getOrUndefined(decodeVersion(decoded.object))?.metadata.resourceVersion
  request.hasReceived = true
  state.failures = 0
  state.refusals = 0
  if (version !== undefined) state.resourceVersion = version
  return decoded.type === "BOOKMARK" ? undefined : yield* eventOf(watched, decoded.type, decoded.object)
})

/** Ends a watch that the server has closed. A watch that was closed at once without any data has failed. */
const endRequest = Effect.fnUntraced(function* (watched: Watched<KubeObject>, state: WatchState, { hasReceived, openedAt }: WatchRequest) {
  const now = yield* monotonicMillis
  if (now >= state.relistAt) state.resourceVersion = undefined
  const brief = now - openedAt < 1000
  if (!hasReceived && brief) return yield* retryable(watched, "was closed immediately after it was opened")
  state.failures = 0
  // Pause before the next request if the server ends every watch early.
  if (brief) yield* Effect.sleep(watched.settings.backoff)
  return yield* Cause.done()
})

/** The complete lines that the next chunk ends; undefined if the watch has ended. */
const readLines = Effect.fnUntraced(function* (watched: Watched<KubeObject>, state: WatchState, request: WatchRequest) {
  const next = yield* Effect.tryPromise({
    try: () => request.chunks.next(),
    catch: () => retryable(watched, "was cut off")
  }).pipe(Effect.timeoutOption(Duration.toMillis(watched.settings.watchIdle)))
  if (Option.isNone(next) || next.value.done === true) return undefined
  state.heardAt = yield* monotonicMillis
  const lines = (request.partial + String(next.value.value)).split("\n")
  request.partial = lines.pop() ?? ""
  if (request.partial.length > maxLineLength) return yield* retryable(watched, "sent a line that is too long")
  return lines.filter((line) => line !== "")
})

/** The next events of a watch. Those before a failure are returned first. */
const readEvents = Effect.fnUntraced(function* <A extends KubeObject>(watched: Watched<A>, state: WatchState, request: WatchRequest) {
  while (true) {
    if (request.failure !== undefined) return yield* request.failure
    const lines = yield* readLines(watched, state, request)
    if (lines === undefined) return yield* endRequest(watched, state, request)
    const events: Array<WatchEvent<A>> = []
    for (const line of lines) {
      const event = yield* Effect.result(readLine(watched, state, request, line))
      if (event._tag === "Failure") {
        request.failure = event.failure
        break
      }
      if (event.success !== undefined) events.push(event.success)
    }
    const [first, ...rest] = events
    if (first !== undefined) return [first, ...rest] as const
  }
})

/** One watch request from opening to end. */
export const followWatch = <A extends KubeObject>(watched: Watched<A>, state: WatchState, resourceVersion: string) =>
  Effect.map(openRequest(watched, resourceVersion), (request) => Stream.fromPull(Effect.succeed(readEvents(watched, state, request))))
