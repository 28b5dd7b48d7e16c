import { PgClient } from "@effect/sql-pg"
import type { OrgId, UserId } from "@seatrial/domain"
import { Clock, Config, Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { EncryptionKey, seal, unseal } from "./sealing.ts"

/** Hub tokens of users, encrypted at rest (AES-256-GCM) with the key of `SEATRIAL_ENCRYPTION_KEY`. */
export class HubConnections extends Context.Service<
  HubConnections,
  {
    readonly set: (orgId: OrgId, userId: UserId, token: Redacted.Redacted<string>) => Effect.Effect<void>
    readonly find: (orgId: OrgId, userId: UserId) => Effect.Effect<Option.Option<Redacted.Redacted<string>>>
    readonly remove: (orgId: OrgId, userId: UserId) => Effect.Effect<void>
  }
>()("seatrial/HubConnections") {
  static readonly layerSql = Layer.effect(
    HubConnections,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const key = yield* Config.schema(Schema.Redacted(EncryptionKey), "SEATRIAL_ENCRYPTION_KEY")
      const ownerOf = (orgId: string, userId: string) => `${orgId}/${userId}`

      const find = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, userId: Schema.String }),
        Result: Schema.Struct({ sealed: Schema.Uint8Array }),
        execute: ({ orgId, userId }) => sql`SELECT sealed_token AS sealed FROM hub_connections WHERE org_id = ${orgId} AND user_id = ${userId}`
      })

      return HubConnections.of({
        set: Effect.fn("HubConnections.set")(function* (orgId, userId, token) {
          const at = new Date(yield* Clock.currentTimeMillis)
          const sealed = seal(Redacted.value(key), Redacted.value(token), ownerOf(orgId, userId))
          yield* Effect.orDie(sql`
            INSERT INTO hub_connections (org_id, user_id, sealed_token, created_at, updated_at) VALUES (${orgId}, ${userId}, ${sealed}, ${at}, ${at})
            ON CONFLICT (org_id, user_id) DO UPDATE SET sealed_token = excluded.sealed_token, updated_at = excluded.updated_at`)
        }),
        find: Effect.fn("HubConnections.find")((orgId, userId) =>
          find({ orgId, userId }).pipe(
            Effect.map(
              (found): Option.Option<Redacted.Redacted<string>> =>
                Option.map(found, ({ sealed }) => Redacted.make(unseal(Redacted.value(key), sealed, ownerOf(orgId, userId))))
            ),
            Effect.orDie
          )
        ),
        remove: Effect.fn("HubConnections.remove")((orgId, userId) =>
          Effect.orDie(Effect.asVoid(sql`DELETE FROM hub_connections WHERE org_id = ${orgId} AND user_id = ${userId}`))
        )
      })
    })
  )
}
