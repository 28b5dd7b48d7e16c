import { PgClient } from "@effect/sql-pg"
import { Ids, OrgId } from "@seatrial/domain"
import { Clock, Context, Data, Effect, Layer, type Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { join, type Role, type User, UserRow } from "./join.ts"

export interface Organization {
  readonly id: OrgId
  readonly slug: string
  readonly name: string
  readonly status: "active" | "suspended"
  /** Whether the first purchase was made; without it, deployments are not allowed. */
  readonly firstPurchase: boolean
}

export type { Role, User } from "./join.ts"

const OrganizationRow = Schema.Struct({
  id: OrgId,
  slug: Schema.String,
  name: Schema.String,
  status: Schema.Literals(["active", "suspended"]),
  firstPurchase: Schema.Boolean
})

/** The slug or the email address is taken. */
export class NameTaken extends Data.TaggedError("NameTaken")<{ readonly name: string }> {}

const organizationStatements = (sql: PgClient.PgClient) => {
  const columns = sql.literal(`id, slug, name, status, first_purchase_at IS NOT NULL AS "firstPurchase"`)
  const findBySlug = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: OrganizationRow,
    execute: (slug) => sql`SELECT ${columns} FROM organizations WHERE slug = ${slug}`
  })
  const list = SqlSchema.findAll({
    Request: Schema.Void,
    Result: OrganizationRow,
    execute: () => sql`SELECT ${columns} FROM organizations ORDER BY slug`
  })
  const lockName = SqlSchema.findOne({
    Request: OrgId,
    Result: Schema.Struct({ name: Schema.String }),
    execute: (orgId) => sql`SELECT name FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`
  })
  const findMember = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: OrgId, email: Schema.String }),
    Result: UserRow,
    execute: ({ email, orgId }) => sql`
      SELECT u.id, u.email, u.name FROM memberships m JOIN users u ON u.id = m.user_id
      WHERE m.org_id = ${orgId} AND u.email = ${email}`
  })
  return { findBySlug, findMember, list, lockName }
}

/** Invalidates the organization's keys in every server's cache. */
const forgetKeys = (sql: PgClient.PgClient, orgId: OrgId) => sql`SELECT pg_notify('api_keys', ${orgId})`

const createOrganization = (sql: PgClient.PgClient, ids: Ids["Service"]): Organizations["Service"]["create"] =>
  Effect.fn("Organizations.create")(function* ({ name, slug }) {
    const at = yield* Clock.currentTimeMillis
    const id = yield* ids.make(OrgId, at)
    const organization: Organization = { id, slug, name, status: "active", firstPurchase: false }
    yield* sql`
      INSERT INTO organizations (id, slug, name, status, created_at, updated_at)
      VALUES (${id}, ${slug}, ${name}, 'active', ${new Date(at)}, ${new Date(at)})`.pipe(
      Effect.andThen(
        writeAudit(sql, ids, {
          orgId: id,
          actorKind: "admin",
          resourceType: "org",
          resourceId: id,
          action: "created",
          before: null,
          after: { slug, name, status: "active" },
          at
        })
      ),
      sql.withTransaction,
      Effect.catchReason("SqlError", "UniqueViolation", () => new NameTaken({ name: slug }), Effect.die)
    )
    return organization
  })

const renameOrganization = (
  sql: PgClient.PgClient,
  ids: Ids["Service"],
  lockName: ReturnType<typeof organizationStatements>["lockName"]
): Organizations["Service"]["rename"] =>
  Effect.fn("Organizations.rename")(function* (orgId, name) {
    const at = yield* Clock.currentTimeMillis
    yield* Effect.gen(function* () {
      const { name: before } = yield* lockName(orgId)
      if (before === name) return
      yield* sql`UPDATE organizations SET name = ${name}, updated_at = ${new Date(at)} WHERE id = ${orgId}`
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "admin",
        resourceType: "org",
        resourceId: orgId,
        action: "updated",
        before: { name: before },
        after: { name },
        at
      })
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const recordPurchase = (sql: PgClient.PgClient, ids: Ids["Service"]): Organizations["Service"]["recordPurchase"] =>
  Effect.fn("Organizations.recordPurchase")(function* ({ micros, orgId, reference = null }) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const recorded = yield* sql`
        INSERT INTO purchases (org_id, amount_micros, reference, created_at) VALUES (${orgId}, ${micros}, ${reference}, ${new Date(at)})
        ON CONFLICT (org_id, reference) WHERE reference IS NOT NULL DO NOTHING RETURNING 1`
      if (recorded.length === 0) return false
      yield* sql`
        UPDATE organizations SET first_purchase_at = ${new Date(at)}, updated_at = ${new Date(at)} WHERE id = ${orgId} AND first_purchase_at IS NULL`
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "admin",
        resourceType: "billing",
        resourceId: orgId,
        action: "granted",
        before: null,
        after: { kind: "purchase", amount_micros: micros.toString(), reference },
        at
      })
      yield* forgetKeys(sql, orgId)
      yield* sql`SELECT pg_notify('spend', ${orgId})`
      return true
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const setStatus = (sql: PgClient.PgClient, ids: Ids["Service"]): Organizations["Service"]["setStatus"] =>
  Effect.fn("Organizations.setStatus")(function* (orgId, status) {
    const at = yield* Clock.currentTimeMillis
    yield* Effect.gen(function* () {
      const changed = yield* sql`
        UPDATE organizations SET status = ${status}, updated_at = ${new Date(at)} WHERE id = ${orgId} AND status <> ${status} RETURNING 1`
      if (changed.length === 0) return
      const active = status === "active"
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "admin",
        resourceType: "org",
        resourceId: orgId,
        action: active ? "resumed" : "updated",
        before: { status: active ? "suspended" : "active" },
        after: { status },
        at
      })
      yield* forgetKeys(sql, orgId)
      yield* sql`SELECT pg_notify('routes', ${orgId})`
    }).pipe(sql.withTransaction, Effect.orDie)
  })

/**
 * Organizations, their users and their purchases. Each change writes its audit event in the same transaction, as actor
 * `admin`.
 */
export class Organizations extends Context.Service<
  Organizations,
  {
    readonly create: (input: { readonly slug: string; readonly name: string }) => Effect.Effect<Organization, NameTaken>
    readonly findBySlug: (slug: string) => Effect.Effect<Option.Option<Organization>>
    readonly list: Effect.Effect<ReadonlyArray<Organization>>
    /** Changes the full name. The slug never changes: it is part of the callable names of the organization's models. */
    readonly rename: (orgId: OrgId, name: string) => Effect.Effect<void>
    /** Creates the membership if it is missing, and the user if the address is new. */
    readonly addUser: (input: { readonly orgId: OrgId; readonly email: string; readonly name: string; readonly role: Role }) => Effect.Effect<User>
    readonly findUser: (orgId: OrgId, email: string) => Effect.Effect<Option.Option<User>>
    /**
     * Records a purchase in micro-dollars; the first one enables deployments. False if the `reference` (an invoice
     * number) was recorded before; then nothing changes.
     */
    readonly recordPurchase: (input: { readonly orgId: OrgId; readonly micros: bigint; readonly reference?: string }) => Effect.Effect<boolean>
    readonly setStatus: (orgId: OrgId, status: Organization["status"]) => Effect.Effect<void>
  }
>()("seatrial/Organizations") {
  static readonly layerSql = Layer.effect(
    Organizations,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const { findBySlug, findMember, list, lockName } = organizationStatements(sql)

      return Organizations.of({
        create: createOrganization(sql, ids),
        findBySlug: Effect.fn("Organizations.findBySlug")((slug) => Effect.orDie(findBySlug(slug))),
        list: Effect.orDie(list()).pipe(Effect.withSpan("Organizations.list")),
        rename: renameOrganization(sql, ids, lockName),
        addUser: Effect.fn("Organizations.addUser")(function* (input) {
          const at = yield* Clock.currentTimeMillis
          const { user } = yield* join(sql, ids, { ...input, at }).pipe(sql.withTransaction, Effect.orDie)
          return user
        }),
        findUser: Effect.fn("Organizations.findUser")((orgId, email) => Effect.orDie(findMember({ orgId, email: email.toLowerCase() }))),
        recordPurchase: recordPurchase(sql, ids),
        setStatus: setStatus(sql, ids)
      })
    })
  )
}
