import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { MillisFromDate } from "./columns.ts"

const ReservationRow = Schema.Struct({ organization: Schema.String, hostClass: Schema.String, gpus: Schema.Int, updatedAt: MillisFromDate })
/** Reserved GPUs of a host class for an organization (its slug). `updatedAt` in Unix milliseconds. */
export type Reservation = typeof ReservationRow.Type

/** The reservations of all organizations, by organization and host class. */
export const listReservations = (sql: PgClient.PgClient): Effect.Effect<ReadonlyArray<Reservation>> => {
  const list = SqlSchema.findAll({
    Request: Schema.Void,
    Result: ReservationRow,
    execute: () => sql`
      SELECT o.slug AS organization, r.host_class AS "hostClass", r.gpus, r.updated_at AS "updatedAt"
      FROM reservations r JOIN organizations o ON o.id = r.org_id ORDER BY o.slug, r.host_class`
  })
  return Effect.orDie(list())
}
