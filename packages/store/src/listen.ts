import { type PgClient, PgConnection } from "@effect/sql-pg"
import { Duration, Effect, Stream } from "effect"

/** An event of a listener. Notifications may have been lost before each `Listening`. */
export type ListenEvent = { readonly _tag: "Listening" } | { readonly _tag: "Notified"; readonly payload: string } | { readonly _tag: "Lost" }

const listening: ListenEvent = { _tag: "Listening" }
const lost: ListenEvent = { _tag: "Lost" }

/** Milliseconds before the first and between later attempts to connect. */
const firstPauseMillis = 250
const longestPauseMillis = 2_000

/**
 * The notifications of one channel. Uses a separate connection and reconnects if it is lost. Never ends and never
 * fails. A consumer that keeps a copy of data must read it again on each `Listening`. The log has one line when the
 * connection is lost, and one when it is back.
 */
export const listen = (client: Pick<PgClient.PgClient, "config">, channel: string): Stream.Stream<ListenEvent> =>
  Stream.suspend(() => {
    let failures = 0
    const connected = Effect.suspend(() => {
      const wasLost = failures > 0
      failures = 0
      return wasLost ? Effect.logInfo(`Reconnected for database notifications (${channel})`) : Effect.void
    })
    const disconnected = (message: string) =>
      Effect.suspend(() =>
        ++failures === 1 ? Effect.logWarning(`Lost the connection for database notifications (${channel}); reconnecting (${message})`) : Effect.void
      )
    const pause = Effect.suspend(() => Effect.sleep(Duration.millis(Math.min(firstPauseMillis * 2 ** Math.max(0, failures - 1), longestPauseMillis))))
    return Stream.unwrap(
      Effect.gen(function* () {
        const connection = yield* PgConnection.make(client.config)
        const notifications = yield* connection.listen(channel)
        yield* connected
        return Stream.fromQueue(notifications).pipe(
          Stream.map(({ payload }): ListenEvent => ({ _tag: "Notified", payload })),
          Stream.prepend([listening])
        )
      })
    ).pipe(
      Stream.catch((error) => Stream.fromEffect(Effect.as(disconnected(error.message), lost))),
      Stream.concat(Stream.drain(Stream.fromEffect(pause))),
      Stream.forever
    )
  })
