import type { PgClient } from "@effect/sql-pg"
import { OrgId } from "@seatrial/domain"
import { Effect, Schema, Stream } from "effect"
import { listen } from "../listen.ts"
import type { AccountMemory, AccountReadings } from "./accountReadings.ts"
import { SpendNotice } from "./statements.ts"

/** Applies changed sums and limits to the accounts in memory. */
export const followSpending = (sql: PgClient.PgClient, { cache, fork, readings, report }: AccountMemory & { readonly readings: AccountReadings }) => {
  const readAgain = (orgId: OrgId) =>
    readings.using(orgId, ({ account }) => account).pipe(Effect.catchCause((cause) => Effect.logWarning("Could not read an account", cause)))

  return listen(sql, "spend").pipe(
    Stream.runForEach((event) =>
      Effect.gen(function* () {
        if (event._tag !== "Notified") return cache.setTrusted(event._tag === "Listening")
        // Read immediately, so that the effect of a lower limit is reported.
        if (Schema.is(OrgId)(event.payload)) return cache.forget(event.payload) ? fork(Effect.asVoid(readAgain(event.payload))) : undefined
        const { org, ...row } = yield* Effect.orDie(Schema.decodeUnknownEffect(SpendNotice)(event.payload))
        const account = cache.merge(org, row)
        if (account !== undefined) report(account, org, row.key === "" ? null : row.key)
      }).pipe(Effect.catchCause((cause) => Effect.logError("Could not read a changed sum", cause)))
    ),
    Effect.forkScoped
  )
}
