import { type UnsentAlarm, UnsentAlarms } from "@seatrial/store"
import { Cause, Clock, Data, Duration, Effect, Latch, Redacted, type Scope } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { operatorMetrics } from "../metrics.ts"
import type { WebhookSettings } from "./WebhookSettings.ts"
import { webhookMessage } from "./webhookMessage.ts"

/** How long the receiver may take to answer. */
const timeout = "10 seconds"
const [firstPause, longestPause] = [Duration.seconds(10), Duration.minutes(10)]

/** Why the receiver has not accepted a message. It never contains the address. */
class NotAccepted extends Data.TaggedError("NotAccepted")<{ readonly message: string }> {}

/** Sends one message. Only a 2xx status accepts it. The body of the response is not read, and no redirect is followed. */
const send = Effect.fnUntraced(function* ({ key, url }: WebhookSettings, alarm: UnsentAlarm) {
  const { body, headers } = webhookMessage(alarm, key, yield* Clock.currentTimeMillis)
  const request = HttpClientRequest.post(Redacted.value(url)).pipe(
    HttpClientRequest.bodyText(body, "application/json"),
    HttpClientRequest.setHeaders({ ...headers, "user-agent": "seatrial" })
  )
  const client = HttpClient.withScope(yield* HttpClient.HttpClient)
  const { status } = yield* client.execute(request).pipe(
    Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
    // A span would have the address as an attribute.
    Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
    Effect.mapError(() => new NotAccepted({ message: "it cannot be reached" })),
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(new NotAccepted({ message: `it gave no answer within ${timeout}` })) })
  )
  if (status < 200 || status > 299) return yield* new NotAccepted({ message: `it answered with status ${status}` })
}, Effect.scoped)

/** Sends all alarms that were not sent. Returns whether the receiver accepted each of them, and all are recorded as sent. */
const sendAll = Effect.fnUntraced(function* (settings: WebhookSettings) {
  const store = yield* UnsentAlarms
  while (true) {
    const alarms = yield* store.list
    if (alarms.length === 0) return true
    const sent = yield* Effect.forEach(alarms, (alarm) =>
      send(settings, alarm).pipe(
        Effect.as("accepted" as const),
        Effect.catchTag("NotAccepted", ({ message }) =>
          Effect.as(Effect.logWarning(`the webhook has not accepted ${alarm.id}: ${message}`), "failed" as const)
        ),
        Effect.tap((outcome) => operatorMetrics.webhookMessages.update({ outcome }, 1)),
        Effect.flatMap((outcome) => (outcome === "accepted" ? store.markSent(alarm) : Effect.succeed(false)))
      )
    )
    if (!sent.every(Boolean)) return false
  }
})

/** Each pause is twice as long as the one before. */
const pauseAfter = (failures: number): Duration.Duration => Duration.min(longestPause, Duration.times(firstPause, 2 ** Math.min(failures - 1, 10)))

/**
 * Sends each alarm to the webhook, at least once within a day, until the scope closes. Returns what to run when an alarm was
 * recorded.
 */
export const sendAlarms = Effect.fnUntraced(function* (
  settings: WebhookSettings | null
): Effect.fn.Return<Effect.Effect<void>, never, HttpClient.HttpClient | Scope.Scope | UnsentAlarms> {
  if (settings === null) return Effect.void
  const isDue = yield* Latch.make(false)
  const run = Effect.gen(function* () {
    let failures = 0
    while (true) {
      yield* isDue.close
      const isDone = yield* sendAll(settings).pipe(
        Effect.catchCause((cause) => Effect.as(Effect.logWarning("alarms for the webhook wait for the database", Cause.pretty(cause)), false))
      )
      failures = isDone ? 0 : failures + 1
      yield* isDone ? isDue.await : Effect.raceFirst(isDue.await, Effect.sleep(pauseAfter(failures)))
    }
  })
  yield* Effect.forkScoped(run)
  return Effect.asVoid(isDue.open)
})
