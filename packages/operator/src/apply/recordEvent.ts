import { Event, KubeClient } from "@seatrial/kube"
import { Clock, Effect } from "effect"

/**
 * Annotation of an event that may recur: a hash of its last content, so that the same occurrence is not counted twice,
 * even after a crash.
 */
export const recordedAnnotation = "seatrial.dev/told"

/**
 * A burst of this many occurrences is recorded at once, then one per interval, as in the Kubernetes client libraries.
 * The status contains the omitted part.
 */
const burst = 25
const refill = 300_000

/** A time in the format of events: UTC with microseconds. */
export const eventTime = (at: number): string => new Date(at).toISOString().replace("Z", "000Z")

/** Counts the existing event up. kubectl shows `x5 over 2m` instead of five events. Only its series can be changed. */
const countAgain = Effect.fnUntraced(function* ({ metadata }: Event, occurrence: string) {
  const kube = yield* KubeClient
  const { name, namespace } = metadata
  // An empty patch writes nothing and returns the object, so that no permission to read events is needed.
  const { eventTime: firstTime, metadata: stored, series } = yield* kube.mergePatch(Event, name, namespace, {})
  if (stored.annotations?.[recordedAnnotation] === occurrence) return
  const now = yield* Clock.currentTimeMillis
  const first = Date.parse(firstTime ?? "")
  const count = series?.count ?? 1
  if (count >= burst + Math.floor(Math.max(0, now - (Number.isNaN(first) ? now : first)) / refill)) return
  const annotations = { [recordedAnnotation]: occurrence }
  yield* kube.mergePatch(Event, name, namespace, { metadata: { annotations }, series: { count: count + 1, lastObservedTime: eventTime(now) } })
})

/**
 * Creates an event once: its name follows from its content. An event with the annotation is counted again if the
 * annotation has changed. If the API server refused the event (a quota, a webhook, a missing namespace), the operator
 * logs that and continues, because the status contains the same information.
 */
export const recordEvent = Effect.fnUntraced(function* (event: Event) {
  const kube = yield* KubeClient
  const occurrence = event.metadata.annotations?.[recordedAnnotation]
  yield* kube.create(Event, event).pipe(
    Effect.asVoid,
    Effect.catchIf(
      (error) => error.reason === "Conflict",
      () => (occurrence === undefined ? Effect.void : countAgain(event, occurrence))
    ),
    Effect.catchIf(
      (error) => error.reason !== "Retryable" && error.reason !== "Gone",
      (error) => Effect.logWarning(`the API server refused the event ${event.reason} of ${event.regarding.name}: ${error.message}`)
    )
  )
})
