import { Clock, Effect, Queue, type Scope, Stream } from "effect"
import { type JsonObject, put, textAt } from "./Json.ts"
import { apiVersionOf, type Kind } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import type { Change, ObjectStore, Stored } from "./ObjectStore.ts"
import { present } from "./present.ts"
import type { Matches } from "./Selector.ts"
import { table } from "./Table.ts"

interface WatchOptions {
  readonly kind: Kind
  readonly namespace: string | undefined
  readonly matches: Matches
  /** Undefined: begin with the current objects. */
  readonly from: number | undefined
  readonly bookmarks: boolean
  /** Mark the end of the current objects by an annotated bookmark. */
  readonly markInitial: boolean
  readonly seconds: number
  readonly asTable: boolean
  readonly include: string | null
}

const bookmarkEvery = "30 seconds"

/**
 * A watch as lines of JSON events. It ends with a last bookmark after its timeout, or if the client is too slow. A
 * version that is too old causes an ERROR event.
 */
export const watch = Effect.fnUntraced(function* (
  store: ObjectStore["Service"],
  { asTable, bookmarks, from, include, kind, markInitial, matches, namespace, seconds }: WatchOptions
): Effect.fn.Return<Stream.Stream<string>, never, Scope.Scope> {
  const now = yield* Clock.currentTimeMillis
  const line = (type: string, object: JsonObject) => `${JSON.stringify({ type, object })}\n`
  const render = (type: string, { object }: Stored, at: number) => {
    const presented = present(kind, object)
    return line(type, asTable ? table(kind, [presented], { resourceVersion: textAt(object, "metadata", "resourceVersion") }, include, at) : presented)
  }
  const selected = (stored: Stored | undefined) => stored !== undefined && (namespace === undefined || stored.namespace === namespace) && matches(stored.object)
  const eventOf = (change: Change, at: number): string | undefined => {
    const was = selected(change.before)
    const is = !change.removed && selected(change.after)
    if (is) return render(was ? "MODIFIED" : "ADDED", change.after, at)
    if (!was || change.before === undefined) return undefined
    const last = change.removed
      ? change.after
      : { ...change.before, object: put(change.before.object, ["metadata", "resourceVersion"], String(change.version)) }
    return render("DELETED", last, at)
  }
  const bookmark = (version: number, initialEnd: boolean) => {
    const metadata = {
      resourceVersion: String(version),
      creationTimestamp: null,
      ...(initialEnd ? { annotations: { "k8s.io/initial-events-end": "true" } } : {})
    }
    const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata }
    return line("BOOKMARK", asTable ? table(kind, [object], { resourceVersion: metadata.resourceVersion }, include, now) : object)
  }

  // Subscribing and reading the current objects is one step, so that no change is lost or sent twice.
  const queue = yield* store.subscribe(kind.stored)
  const past = from === undefined ? [] : store.since(from, kind.stored)
  if (past === undefined) return Stream.make(line("ERROR", KubeStatus.expired(from ?? 0, store.oldest()).body))
  const existing = from === undefined ? store.list(kind.stored, namespace).filter(selected) : []
  const first = [
    ...existing.map((one) => render("ADDED", one, now)),
    ...past.flatMap((change) => eventOf(change, now) ?? []),
    ...(markInitial ? [bookmark(store.version(), true)] : [])
  ]
  // Bookmarks go through the queue, so that a bookmark never precedes a change that it covers.
  const mark = Effect.sync(() => bookmarks && Queue.offerUnsafe(queue, { mark: store.version() }))
  yield* Effect.forkScoped(mark.pipe(Effect.delay(bookmarkEvery), Effect.forever))
  yield* Effect.forkScoped(Effect.delay(Effect.andThen(mark, Queue.end(queue)), seconds * 1_000))
  const live = Stream.fromQueue(queue).pipe(
    Stream.mapEffect((one) => ("mark" in one ? Effect.succeed(bookmark(one.mark, false)) : Effect.map(Clock.currentTimeMillis, (at) => eventOf(one, at)))),
    Stream.filter((text) => text !== undefined)
  )
  return Stream.concat(Stream.fromIterable(first), live)
})
