import { PgClient } from "@effect/sql-pg"
import { Ids, type OrgId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { listReservations, type Reservation } from "./listReservations.ts"
import { wakeWaiting } from "./wakeWaiting.ts"

/**
 * GPUs reserved for organizations. Each change writes its audit event and notifies the runs that wait for GPUs, in the
 * same transaction.
 */
export class Reservations extends Context.Service<
  Reservations,
  {
    /** Reservations of all organizations, by organization and host class. */
    readonly list: Effect.Effect<ReadonlyArray<Reservation>>
    /**
     * Reserves this number of GPUs of the host class for the organization, and returns the number that was reserved
     * before; none if this is the first reservation.
     */
    readonly grant: (input: { readonly orgId: OrgId; readonly hostClass: string; readonly gpus: number }) => Effect.Effect<Option.Option<number>>
    /**
     * Removes the organization's reservation of the host class; running engines continue. Returns the number that was
     * reserved; none if there was no reservation.
     */
    readonly withdraw: (orgId: OrgId, hostClass: string) => Effect.Effect<Option.Option<number>>
  }
>()("seatrial/Reservations") {
  static readonly layerSql = Layer.effect(
    Reservations,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids

      const held = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, hostClass: Schema.String }),
        Result: Schema.Struct({ gpus: Schema.Int }),
        execute: ({ hostClass, orgId }) => sql`SELECT gpus FROM reservations WHERE org_id = ${orgId} AND host_class = ${hostClass} FOR UPDATE`
      })
      const change = Effect.fnUntraced(function* (orgId: OrgId, hostClass: string, gpus: number) {
        const now = yield* Clock.currentTimeMillis
        const at = new Date(now)
        return yield* Effect.gen(function* () {
          // Serializes concurrent grants, even if there is no row to lock yet.
          yield* sql`SELECT 1 FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`
          const before = Option.map(yield* held({ orgId, hostClass }), (row) => row.gpus)
          if (Option.getOrElse(before, () => 0) === gpus) return before
          yield* gpus === 0
            ? sql`DELETE FROM reservations WHERE org_id = ${orgId} AND host_class = ${hostClass}`
            : sql`
              INSERT INTO reservations (org_id, host_class, gpus, created_at, updated_at) VALUES (${orgId}, ${hostClass}, ${gpus}, ${at}, ${at})
              ON CONFLICT (org_id, host_class) DO UPDATE SET gpus = excluded.gpus, updated_at = excluded.updated_at`
          yield* writeAudit(sql, ids, {
            orgId,
            actorKind: "admin",
            resourceType: "billing",
            resourceId: orgId,
            action: Option.isNone(before) ? "granted" : "updated",
            before: Option.match(before, { onNone: () => null, onSome: (reserved) => ({ host_class: hostClass, reserved_gpus: reserved }) }),
            after: { host_class: hostClass, reserved_gpus: gpus },
            at: now
          })
          yield* wakeWaiting(sql, at)
          return before
        }).pipe(sql.withTransaction, Effect.orDie)
      })

      return Reservations.of({
        list: listReservations(sql).pipe(Effect.withSpan("Reservations.list")),
        grant: Effect.fn("Reservations.grant")(({ gpus, hostClass, orgId }) => change(orgId, hostClass, gpus)),
        withdraw: Effect.fn("Reservations.withdraw")((orgId, hostClass) => change(orgId, hostClass, 0))
      })
    })
  )
}
