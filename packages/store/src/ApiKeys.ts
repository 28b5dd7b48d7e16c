import { hash, randomBytes } from "node:crypto"
import { PgClient, PgTypes } from "@effect/sql-pg"
import { Ids, isApiKey, KeyId, makeApiKey, OrgId, Scope, UserId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Option, Queue, Redacted, Result, Schema, Stream } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { IsoFromDate, MillisFromDate } from "./columns.ts"
import { KeyCache } from "./KeyCache.ts"
import { listen } from "./listen.ts"

/** Who calls: what an API key stands for. */
export interface Caller {
  readonly keyId: KeyId
  readonly orgId: OrgId
  readonly orgSlug: string
  /** The key's creator. */
  readonly userId: UserId
  readonly scopes: ReadonlySet<Scope>
  readonly firstPurchase: boolean
}

export interface ApiKey {
  readonly id: KeyId
  readonly orgId: OrgId
  readonly userId: UserId
  readonly name: string
  /** `seatrial_` and the first characters, and the last four: enough to recognise it, not to use it. */
  readonly prefix: string
  readonly lastFour: string
  readonly scopes: ReadonlyArray<Scope>
  /** ISO 8601, or null. */
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly revokedAt: string | null
  readonly lastUsedAt: string | null
}

const nullableTime = Schema.NullOr(IsoFromDate)
const ApiKeyRow = Schema.Struct({
  id: KeyId,
  orgId: OrgId,
  userId: UserId,
  name: Schema.String,
  prefix: Schema.String,
  lastFour: Schema.String,
  scopes: Schema.Array(Scope),
  createdAt: IsoFromDate,
  expiresAt: nullableTime,
  revokedAt: nullableTime,
  lastUsedAt: nullableTime
})
const CallerRow = Schema.Struct({
  keyId: KeyId,
  orgId: OrgId,
  orgSlug: Schema.String,
  userId: UserId,
  scopes: Schema.Array(Scope),
  firstPurchase: Schema.Boolean,
  expiresAt: Schema.NullOr(MillisFromDate),
  lastUsedAt: Schema.NullOr(MillisFromDate)
})

const sha256Of = (text: string): string => hash("sha256", text, "hex")

/** How often the use of a key is written down, milliseconds. */
const useInterval = 60_000

/** API keys: only their SHA-256 is stored. Changes write their audit events. */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    /** The secret is told once, here. `expiresAt` in Unix milliseconds. */
    readonly create: (input: {
      readonly orgId: OrgId
      readonly userId: UserId
      readonly name: string
      readonly scopes: ReadonlyArray<Scope>
      readonly expiresAt?: number
    }) => Effect.Effect<{ readonly key: ApiKey; readonly secret: Redacted.Redacted<string> }>
    /**
     * Who a bearer token is, if it is a live key of an active organisation. Answers are cached for 30 s at most and dropped at once when a key or an organisation
     * changes (`NOTIFY api_keys`); `last_used_at` is written at most once a minute.
     */
    readonly authenticate: (token: Redacted.Redacted<string>) => Effect.Effect<Option.Option<Caller>>
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<ApiKey>>
    /** None where the organisation has no such live key. */
    readonly revoke: (orgId: OrgId, id: KeyId) => Effect.Effect<Option.Option<ApiKey>>
  }
>()("seatrial/ApiKeys") {
  static readonly layerSql = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const cache = new KeyCache(10_000)

      yield* listen(sql, "api_keys").pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            if (event._tag === "Notified") cache.forget(event.payload)
            // While nobody tells of revocations, nothing may be remembered.
            else cache.setTrusted(event._tag === "Listening")
          })
        ),
        Effect.forkScoped
      )

      const used = yield* Queue.dropping<{ readonly id: KeyId; readonly orgId: OrgId; readonly at: number }>(1_024)
      yield* Effect.gen(function* () {
        const uses = yield* Queue.takeAll(used)
        const text = (values: ReadonlyArray<string>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))
        const times = uses.map(({ at }) => new Date(at))
        yield* sql`
          UPDATE api_keys k SET last_used_at = u.at
          FROM unnest(${text(uses.map(({ orgId }) => orgId))}::text[], ${text(uses.map(({ id }) => id))}::text[], ${times}::timestamptz[]) AS u (org_id, id, at)
          WHERE k.org_id = u.org_id AND k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at <= u.at - make_interval(secs => ${useInterval / 1_000}))`
      }).pipe(
        Effect.catchCause((cause) => Effect.logWarning("The use of keys could not be written", cause)),
        Effect.forever,
        Effect.forkScoped
      )

      const columns = sql.literal(`
        id, org_id AS "orgId", user_id AS "userId", name, prefix, last_four AS "lastFour", scopes, created_at AS "createdAt", expires_at AS "expiresAt",
        revoked_at AS "revokedAt", last_used_at AS "lastUsedAt"`)
      const find = SqlSchema.findOneOption({
        Request: Schema.Struct({ sha256: Schema.Uint8Array, now: Schema.Finite }),
        Result: CallerRow,
        execute: ({ now, sha256 }) => sql`
          SELECT k.id AS "keyId", k.org_id AS "orgId", o.slug AS "orgSlug", k.user_id AS "userId", k.scopes,
            o.first_purchase_at IS NOT NULL AS "firstPurchase", k.expires_at AS "expiresAt", k.last_used_at AS "lastUsedAt"
          FROM api_keys k JOIN organizations o ON o.id = k.org_id
          WHERE k.secret_sha256 = ${sha256} AND k.revoked_at IS NULL AND o.status = 'active'
            AND (k.expires_at IS NULL OR k.expires_at > ${new Date(now)})`
      })
      const insert = SqlSchema.findOne({
        Request: Schema.Struct({
          id: KeyId,
          org_id: OrgId,
          user_id: UserId,
          name: Schema.String,
          secret_sha256: Schema.Uint8Array,
          prefix: Schema.String,
          last_four: Schema.String,
          scopes: Schema.Array(Scope),
          created_at: MillisFromDate,
          expires_at: Schema.NullOr(MillisFromDate)
        }),
        Result: ApiKeyRow,
        execute: (row) => sql`
          INSERT INTO api_keys (id, org_id, user_id, name, secret_sha256, prefix, last_four, scopes, created_at, expires_at)
          VALUES (${row.id}, ${row.org_id}, ${row.user_id}, ${row.name}, ${row.secret_sha256}, ${row.prefix}, ${row.last_four}, ${row.scopes}::text[],
            ${row.created_at}, ${row.expires_at})
          RETURNING ${columns}`
      })
      const list = SqlSchema.findAll({
        Request: OrgId,
        Result: ApiKeyRow,
        execute: (orgId) => sql`SELECT ${columns} FROM api_keys WHERE org_id = ${orgId} ORDER BY created_at DESC, id DESC`
      })
      const revoke = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: OrgId, id: KeyId, at: MillisFromDate }),
        Result: ApiKeyRow,
        execute: ({ at, id, orgId }) => sql`
          UPDATE api_keys SET revoked_at = ${at} WHERE org_id = ${orgId} AND id = ${id} AND revoked_at IS NULL RETURNING ${columns}`
      })

      const lookUp = Effect.fnUntraced(function* (sha256: string, now: number) {
        const generation = cache.generation
        const row = yield* Effect.orDie(find({ sha256: Buffer.from(sha256, "hex"), now }))
        if (Option.isNone(row)) {
          cache.putUnknown(sha256, now, generation)
          return undefined
        }
        const { expiresAt, lastUsedAt, scopes, ...known } = row.value
        const caller: Caller = { ...known, scopes: new Set(scopes) }
        return cache.putLive(sha256, { caller, expiresAt, usedAt: lastUsedAt }, now, generation)
      })

      return ApiKeys.of({
        create: Effect.fn("ApiKeys.create")(function* (input) {
          const at = yield* Clock.currentTimeMillis
          const id = yield* ids.make(KeyId, at)
          const secret = makeApiKey(randomBytes(128))
          const key = yield* insert({
            id,
            org_id: input.orgId,
            user_id: input.userId,
            name: input.name,
            secret_sha256: Buffer.from(sha256Of(secret), "hex"),
            prefix: secret.slice(0, 13),
            last_four: secret.slice(-4),
            scopes: input.scopes,
            created_at: at,
            expires_at: input.expiresAt ?? null
          }).pipe(
            Effect.tap((made) =>
              writeAudit(sql, ids, {
                orgId: input.orgId,
                actorKind: "admin",
                resourceType: "api_key",
                resourceId: id,
                action: "created",
                before: null,
                after: {
                  name: made.name,
                  prefix: made.prefix,
                  last_four: made.lastFour,
                  scopes: made.scopes,
                  user_id: made.userId,
                  expires_at: made.expiresAt
                },
                at
              })
            ),
            sql.withTransaction,
            Effect.orDie
          )
          return { key, secret: Redacted.make(secret) }
        }),
        authenticate: Effect.fn("ApiKeys.authenticate")(function* (token) {
          const text = Redacted.value(token)
          if (!isApiKey(text)) return Option.none()
          const now = yield* Clock.currentTimeMillis
          const sha256 = sha256Of(text)
          if (cache.isUnknown(sha256, now)) return Option.none()
          const entry = cache.live(sha256, now) ?? (yield* lookUp(sha256, now))
          if (entry === undefined) return Option.none()
          if (now - entry.usedAt >= useInterval) {
            entry.usedAt = now
            yield* Queue.offer(used, { id: entry.caller.keyId, orgId: entry.caller.orgId, at: now })
          }
          return Option.some(entry.caller)
        }),
        list: Effect.fn("ApiKeys.list")((orgId) => Effect.orDie(list(orgId))),
        revoke: Effect.fn("ApiKeys.revoke")(function* (orgId, id) {
          const at = yield* Clock.currentTimeMillis
          const revoked = yield* Effect.gen(function* () {
            const key = yield* revoke({ orgId, id, at })
            if (Option.isNone(key)) return key
            yield* writeAudit(sql, ids, {
              orgId,
              actorKind: "admin",
              resourceType: "api_key",
              resourceId: id,
              action: "revoked",
              before: { revoked_at: null },
              after: { revoked_at: key.value.revokedAt },
              at
            })
            yield* sql`SELECT pg_notify('api_keys', ${id})`
            return key
          }).pipe(sql.withTransaction, Effect.orDie)
          // This process need not wait for its own notification.
          if (Option.isSome(revoked)) cache.forget(id)
          return revoked
        })
      })
    })
  )
}
