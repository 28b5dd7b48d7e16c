import { Event, KubeClient } from "@seatrial/kube"
import { Clock, Effect } from "effect"

/** On an event that may be told again: what it told last, so that the same is not counted twice, also after a crash. */
export const toldAnnotation = "seatrial.dev/told"

/** So often an event is told again at once, and then once in so many milliseconds, as by the libraries of Kubernetes. What is left out stands in the status. */
const burst = 25
const refill = 300_000

const times = (at: number) => new Date(at).toISOString().replace(/\.\d{3}Z$/, "Z")

/** Counts in the event that is there what happened again: kubectl shows `x5 over 2m` and the last words, not five events. */
const tellAgain = Effect.fnUntraced(function* ({ message = "", metadata }: Event, told: string) {
  const kube = yield* KubeClient
  const { name, namespace } = metadata
  // A patch of nothing writes nothing and answers with what is there: so no right to read events is needed.
  const { count = 1, firstTimestamp, metadata: stored } = yield* kube.mergePatch(Event, name, namespace, {})
  if (stored.annotations?.[toldAnnotation] === told) return
  const now = yield* Clock.currentTimeMillis
  const first = Date.parse(firstTimestamp ?? "")
  if (count >= burst + Math.floor(Math.max(0, now - (Number.isNaN(first) ? now : first)) / refill)) return
  const annotations = { [toldAnnotation]: told }
  yield* kube.mergePatch(Event, name, namespace, { metadata: { annotations }, message, count: count + 1, lastTimestamp: times(now) })
})

/**
 * Makes an event, once: its name follows from what it tells. One with an annotation `seatrial.dev/told` is told again where that says something else by now. One that
 * the API server refuses (a quota, a webhook, a namespace that is gone) is logged and left out, as what it tells is in the status too, which must not wait for it.
 */
export const tellEvent = Effect.fnUntraced(function* (event: Event) {
  const kube = yield* KubeClient
  const told = event.metadata.annotations?.[toldAnnotation]
  yield* kube.create(Event, event).pipe(
    Effect.asVoid,
    Effect.catchIf(
      (error) => error.reason === "Conflict",
      () => (told === undefined ? Effect.void : tellAgain(event, told))
    ),
    Effect.catchIf(
      (error) => error.reason !== "Retryable" && error.reason !== "Gone",
      (error) => Effect.logWarning(`the API server refuses the event ${event.reason} of ${event.involvedObject.name}: ${error.message}`)
    )
  )
})
