import { type PgClient, PgConnection } from "@effect/sql-pg"
import { Effect, Stream } from "effect"

/** An event of a listener. Notifications may have been lost before each `Listening`. */
export type ListenEvent = { readonly _tag: "Listening" } | { readonly _tag: "Notified"; readonly payload: string } | { readonly _tag: "Lost" }

const listening: ListenEvent = { _tag: "Listening" }
const lost: ListenEvent = { _tag: "Lost" }
const pause = "250 millis"

/**
 * The notifications of one channel. Uses a separate connection and reconnects if it is lost. Never ends and never
 * fails. A consumer that keeps a copy of data must read it again on each `Listening`.
 */
export const listen = (client: PgClient.PgClient, channel: string): Stream.Stream<ListenEvent> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const connection = yield* PgConnection.make(client.config)
      const notifications = yield* connection.listen(channel)
      return Stream.fromQueue(notifications).pipe(
        Stream.map(({ payload }): ListenEvent => ({ _tag: "Notified", payload })),
        Stream.prepend([listening])
      )
    })
  ).pipe(
    Stream.catch((error) =>
      Stream.fromEffect(Effect.as(Effect.logWarning(`Lost the connection for database notifications (${channel}); reconnecting (${error.message})`), lost))
    ),
    Stream.concat(Stream.drain(Stream.fromEffect(Effect.sleep(pause)))),
    Stream.forever
  )
