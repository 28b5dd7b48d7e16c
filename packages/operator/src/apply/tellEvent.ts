import { Event, KubeClient } from "@seatrial/kube"
import { Effect } from "effect"

/**
 * Makes an event, once: its name follows from what it tells. One that the API server refuses (a quota, a webhook, a namespace that is gone) is logged and left out, as
 * what it tells is in the status too, which must not wait for it.
 */
export const tellEvent = Effect.fnUntraced(function* (event: Event) {
  const kube = yield* KubeClient
  yield* kube.create(Event, event).pipe(
    Effect.asVoid,
    Effect.catchIf(
      (error) => error.reason !== "Retryable" && error.reason !== "Gone",
      (error) =>
        error.reason === "Conflict"
          ? Effect.void
          : Effect.logWarning(`the API server refuses the event ${event.reason} of ${event.involvedObject.name}: ${error.message}`)
    )
  )
})
