import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { OrgId, UserId } from "@seatrial/domain"
import { Clock, Effect, Exit, Layer, Option, Redacted, Schema } from "effect"
import { ApiKeys, Billing, Deployments, HubConnections, Invitations, type LastOwner, Members, Organizations, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { makeCaller, newModel } from "./support/index.ts"

const layerAdministration = Layer.mergeAll(Members.layerSql, Invitations.layerSql, Billing.layerSql).pipe(Layer.provideMerge(layerStore))

const Events = Schema.Array(
  Schema.Struct({
    id: Schema.String,
    resource_type: Schema.String,
    resource_id: Schema.String,
    action: Schema.String,
    actor_kind: Schema.String,
    before: Schema.Unknown,
    after: Schema.Unknown
  })
)
type Event = Omit<(typeof Events.Type)[number], "id">

const rowsOf = Effect.fnUntraced(function* (orgId: OrgId) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`
    SELECT id, resource_type, resource_id, action, actor_kind, before, after FROM audit_events WHERE org_id = ${orgId} ORDER BY resource_type DESC, id`
  return yield* Schema.decodeUnknownEffect(Events)(rows)
})
const withoutId = ({ id: _, ...event }: (typeof Events.Type)[number]): Event => event
const eventsOf = (orgId: OrgId) => Effect.map(rowsOf(orgId), (rows) => rows.map(withoutId))

/** Returns the result of the effect and the events that it wrote. */
const audited = Effect.fnUntraced(function* <A, E, R>(orgId: OrgId, effect: Effect.Effect<A, E, R>) {
  const before = new Set((yield* rowsOf(orgId)).map(({ id }) => id))
  const value = yield* effect
  return { value, events: (yield* rowsOf(orgId)).filter(({ id }) => !before.has(id)).map(withoutId) }
})

/** All rows of all tables, as text. */
const dump = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const tables = yield* sql<{ name: string }>`
    SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = 'r' ORDER BY 1`
  const texts = yield* Effect.forEach(
    tables,
    ({ name }) => sql<{ text: string }>`SELECT coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') AS text FROM ${sql(name)} t`
  )
  return texts.map(([row]) => row?.text ?? "").join("\n")
})

const setUp = Effect.fnUntraced(function* (slug: string) {
  const organizations = yield* Organizations
  const { id: orgId } = yield* organizations.create({ slug, name: slug })
  const owner = yield* organizations.addUser({ orgId, email: `owner@${slug}.example`, name: "Owner", role: "owner" })
  return { orgId, owner, organizations }
})

const inDays = (days: number) => Effect.map(Clock.currentTimeMillis, (now) => now + days * 86_400_000)

layer(layerAdministration, { excludeTestServices: true })("administration", (it) => {
  it.effect("each operation writes exactly one event with the values before and after, and no row contains a secret", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { orgId, organizations, owner } = yield* setUp("audited")
      const [members, invitations, billing, keys, hub] = [yield* Members, yield* Invitations, yield* Billing, yield* ApiKeys, yield* HubConnections]
      const secrets: Array<string> = []
      const expectEvents = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>, ...expected: ReadonlyArray<Omit<Event, "actor_kind">>) {
        const { events, value } = yield* audited(orgId, effect)
        assert.deepStrictEqual<unknown>(
          events,
          expected.map((event) => ({ ...event, actor_kind: "admin" }))
        )
        return value
      })
      const event = (resource_type: string, resource_id: string, action: string, before: unknown, after: unknown) => ({
        resource_type,
        resource_id,
        action,
        before,
        after
      })

      assert.deepStrictEqual<unknown>(
        (yield* eventsOf(orgId)).map(({ action, resource_type }) => [resource_type, action]),
        [
          ["org", "created"],
          ["membership", "joined"]
        ]
      )
      yield* expectEvents(organizations.rename(orgId, "Audited Inc."), event("org", orgId, "updated", { name: "audited" }, { name: "Audited Inc." }))
      yield* expectEvents(organizations.rename(orgId, "Audited Inc."))
      yield* expectEvents(organizations.setStatus(orgId, "suspended"), event("org", orgId, "updated", { status: "active" }, { status: "suspended" }))
      yield* expectEvents(organizations.setStatus(orgId, "active"), event("org", orgId, "resumed", { status: "suspended" }, { status: "active" }))

      const sent = yield* audited(orgId, invitations.send({ orgId, email: "Bob@Example.org", role: "member", expiresAt: yield* inDays(7) }))
      secrets.push(Redacted.value(sent.value.token))
      const { expiresAt, id: invitationId } = sent.value.invitation
      assert.deepStrictEqual<unknown>(sent.events, [
        { ...event("invitation", invitationId, "invited", null, { email: "bob@example.org", role: "member", expires_at: expiresAt }), actor_kind: "admin" }
      ])
      const accepted = yield* audited(orgId, invitations.accept(sent.value.token, Option.some("Bob")))
      const bob = accepted.value.user
      assert.deepStrictEqual<unknown>(accepted.events, [
        { ...event("membership", bob.id, "joined", null, { email: "bob@example.org", role: "member", invitation_id: invitationId }), actor_kind: "admin" }
      ])
      const second = yield* invitations.send({ orgId, email: "cyd@example.org", role: "owner", expiresAt: yield* inDays(7) })
      secrets.push(Redacted.value(second.token))
      yield* expectEvents(
        invitations.withdraw(orgId, second.invitation.id),
        event("invitation", second.invitation.id, "revoked", { status: "pending" }, { status: "withdrawn" })
      )
      yield* expectEvents(invitations.withdraw(orgId, second.invitation.id))
      yield* expectEvents(members.changeRole(orgId, bob.id, "owner"), event("membership", bob.id, "role_changed", { role: "member" }, { role: "owner" }))

      const creation = yield* audited(orgId, keys.create({ orgId, userId: bob.id, name: "k", scopes: ["models:read"] }))
      const { key, secret } = creation.value
      secrets.push(Redacted.value(secret))
      const parts = (of: typeof key) => ({ prefix: of.prefix, last_four: of.lastFour })
      assert.deepStrictEqual<unknown>(creation.events, [
        {
          ...event("api_key", key.id, "created", null, { name: "k", ...parts(key), scopes: ["models:read"], user_id: bob.id, expires_at: null }),
          actor_kind: "admin"
        }
      ])
      yield* expectEvents(keys.rename(orgId, key.id, "laptop"), event("api_key", key.id, "updated", { name: "k" }, { name: "laptop" }))
      const rotated = yield* audited(orgId, Effect.map(keys.rotate(orgId, key.id, 60_000), Option.getOrThrow))
      secrets.push(Redacted.value(rotated.value.secret))
      const next = rotated.value.key
      assert.deepStrictEqual<unknown>(rotated.events, [
        {
          ...event(
            "api_key",
            key.id,
            "updated",
            { ...parts(key), previous_secret_expires_at: null },
            { ...parts(next), previous_secret_expires_at: next.previousExpiresAt }
          ),
          actor_kind: "admin"
        }
      ])
      const revoked = yield* audited(orgId, keys.revoke(orgId, key.id))
      const { revokedAt } = Option.getOrThrow(revoked.value)
      assert.deepStrictEqual<unknown>(revoked.events, [
        { ...event("api_key", key.id, "revoked", { revoked_at: null }, { revoked_at: revokedAt }), actor_kind: "admin" }
      ])
      yield* expectEvents(keys.rotate(orgId, key.id, 0))
      yield* expectEvents(keys.rename(orgId, key.id, "again"))

      yield* expectEvents(
        organizations.recordPurchase({ orgId, micros: 5_000_000n, reference: "INV-1" }),
        event("billing", orgId, "granted", null, { kind: "purchase", amount_micros: "5000000", reference: "INV-1" })
      )
      assert.isFalse(yield* expectEvents(organizations.recordPurchase({ orgId, micros: 5_000_000n, reference: "INV-1" })))
      yield* expectEvents(
        billing.grantCredit({ orgId, micros: 7n, note: "welcome" }),
        event("billing", orgId, "granted", null, { kind: "credit", amount_micros: "7", note: "welcome" })
      )
      yield* expectEvents(billing.setGpuLimit(orgId, 4), event("billing", orgId, "updated", { gpu_limit: null }, { gpu_limit: 4 }))
      yield* expectEvents(billing.setGpuLimit(orgId, null), event("billing", orgId, "updated", { gpu_limit: 4 }, { gpu_limit: null }))
      yield* expectEvents(billing.setSuspended(orgId, true), event("billing", orgId, "updated", { status: "active" }, { status: "suspended" }))
      yield* expectEvents(billing.setSuspended(orgId, false), event("billing", orgId, "resumed", { status: "suspended" }, { status: "active" }))
      yield* expectEvents(billing.setSuspended(orgId, false))
      assert.deepStrictEqual(yield* billing.balance(orgId), { purchased: 5_000_000n, credited: 7n, spent: 0n, gpuTime: 0n })
      assert.deepStrictEqual(
        (yield* billing.entries(orgId, "purchase", 10)).map(({ amountMicros, kind, note }) => [kind, amountMicros, note]),
        [["purchase", 5_000_000n, "INV-1"]]
      )

      secrets.push("hf_the-first-token", "hf_the-second-token")
      const connected = yield* audited(orgId, hub.set(orgId, bob.id, Redacted.make("hf_the-first-token")))
      yield* hub.set(orgId, bob.id, Redacted.make("hf_the-second-token"))
      const [connection] = yield* hub.list(orgId)
      assert.deepStrictEqual<unknown>(connected.events, [
        { ...event("membership", bob.id, "updated", { hub_token_set_at: null }, { hub_token_set_at: connection?.createdAt }), actor_kind: "admin" }
      ])
      const shared = (userId: string, now: boolean) => event("membership", userId, "updated", { hub_token_shared: !now }, { hub_token_shared: now })
      yield* expectEvents(hub.share(orgId, owner.id))
      yield* expectEvents(hub.share(orgId, null))
      yield* expectEvents(hub.share(orgId, bob.id), shared(bob.id, true))
      yield* expectEvents(hub.share(orgId, bob.id))
      yield* expectEvents(hub.share(orgId, null), shared(bob.id, false))
      yield* expectEvents(
        hub.remove(orgId, bob.id),
        event("membership", bob.id, "updated", { hub_token_set_at: connection?.updatedAt }, { hub_token_set_at: null })
      )
      yield* expectEvents(hub.remove(orgId, bob.id))

      const last = yield* keys.create({ orgId, userId: bob.id, name: "last", scopes: [] })
      secrets.push(Redacted.value(last.secret))
      const removed = yield* audited(orgId, members.remove(orgId, bob.id))
      assert.deepStrictEqual(Option.getOrThrow(removed.value), [last.key.id])
      const [membership, key2, ...furtherEvents] = removed.events
      assert.deepStrictEqual<unknown>(membership, {
        ...event("membership", bob.id, "removed", { email: "bob@example.org", role: "owner", hub_connected: false }, null),
        actor_kind: "admin"
      })
      assert.deepStrictEqual([key2?.resource_type, key2?.resource_id, key2?.action, furtherEvents.length], ["api_key", last.key.id, "revoked", 0])
      assert.isTrue(Option.isNone(yield* members.remove(orgId, bob.id)))
      assert.strictEqual((yield* members.list(orgId)).length, 1)
      assert.deepStrictEqual(
        (yield* members.users("OWNER@audited", 10)).map(({ id, organizations }) => [id, organizations]),
        [[owner.id, ["audited"]]]
      )

      const everything = yield* dump
      assert.include(everything, "INV-1")
      for (const secret of secrets) assert.notInclude(everything, secret)
      const hashes = yield* sql<{ hash: string }>`
        SELECT encode(secret_sha256, 'hex') AS hash FROM api_keys WHERE org_id = ${orgId} UNION ALL SELECT encode(token_sha256, 'hex') FROM invitations WHERE org_id = ${orgId}`
      const eventText = JSON.stringify(yield* eventsOf(orgId))
      assert.strictEqual(hashes.length, 4)
      for (const { hash } of hashes) assert.notInclude(eventText, hash)
    })
  )

  it.effect("a change whose event cannot be written is rolled back", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { orgId, organizations, owner } = yield* setUp("whole")
      const [members, invitations, billing, keys, hub] = [yield* Members, yield* Invitations, yield* Billing, yield* ApiKeys, yield* HubConnections]
      const bob = yield* organizations.addUser({ orgId, email: "bob@whole.example", name: "Bob", role: "owner" })
      const { key, secret } = yield* keys.create({ orgId, userId: bob.id, name: "k", scopes: [] })
      const { invitation, token } = yield* invitations.send({ orgId, email: "cyd@whole.example", role: "member", expiresAt: yield* inDays(1) })
      yield* hub.set(orgId, bob.id, Redacted.make("hf_x"))
      const expiresAt = yield* inDays(2)
      const operations: Record<string, Effect.Effect<unknown, unknown>> = {
        create: organizations.create({ slug: "another", name: "Another" }),
        rename: organizations.rename(orgId, "Other"),
        suspend: organizations.setStatus(orgId, "suspended"),
        join: organizations.addUser({ orgId, email: "dan@whole.example", name: "Dan", role: "member" }),
        changeRole: members.changeRole(orgId, bob.id, "member"),
        remove: members.remove(orgId, bob.id),
        invite: invitations.send({ orgId, email: "eve@whole.example", role: "member", expiresAt }),
        withdraw: invitations.withdraw(orgId, invitation.id),
        accept: invitations.accept(token, Option.none()),
        createKey: keys.create({ orgId, userId: owner.id, name: "other", scopes: [] }),
        renameKey: keys.rename(orgId, key.id, "other"),
        rotate: keys.rotate(orgId, key.id, 0),
        revoke: keys.revoke(orgId, key.id),
        purchase: organizations.recordPurchase({ orgId, micros: 1n }),
        credit: billing.grantCredit({ orgId, micros: 1n, note: null }),
        limit: billing.setGpuLimit(orgId, 1),
        suspendBilling: billing.setSuspended(orgId, true),
        connect: hub.set(orgId, owner.id, Redacted.make("hf_y")),
        disconnect: hub.remove(orgId, bob.id)
      }
      yield* sql`ALTER TABLE audit_events ADD CONSTRAINT none CHECK (false) NOT VALID`
      yield* Effect.gen(function* () {
        const before = yield* dump
        for (const [name, operation] of Object.entries(operations)) {
          assert.isTrue(Exit.isFailure(yield* Effect.exit(operation)), name)
          assert.strictEqual(yield* dump, before, name)
        }
      }).pipe(Effect.ensuring(Effect.orDie(sql`ALTER TABLE audit_events DROP CONSTRAINT none`)))
      assert.isTrue(Option.isSome(yield* keys.authenticate(secret)))
    })
  )

  it.effect("a changed GPU limit notifies the operator about the waiting runs of the organization only", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const [billing, deployments, runs] = [yield* Billing, yield* Deployments, yield* Runs]
      const { caller } = yield* makeCaller("limited")
      const { orgId } = caller
      const waits = yield* deployments.create(newModel(caller, "one", "one"))
      yield* deployments.create(newModel(caller, "two", "two"))
      yield* runs.enter({ id: waits.id, orgId, from: "screening", to: "waiting", reason: "Test" })
      yield* sql`DELETE FROM outbox WHERE org_id = ${orgId}`
      yield* billing.setGpuLimit(orgId, 2)
      assert.deepStrictEqual<unknown>(yield* sql`SELECT deployment_id AS id FROM outbox WHERE org_id = ${orgId}`, [{ id: waits.id }])
    })
  )

  it.effect("an organization keeps at least one owner, even if all are removed concurrently", () =>
    Effect.gen(function* () {
      const { orgId, organizations, owner } = yield* setUp("owned")
      const members = yield* Members
      const moreOwners = yield* Effect.forEach(["a", "b", "c"], (name) => organizations.addUser({ orgId, email: `${name}@owned.example`, name, role: "owner" }))
      const take = (userId: UserId, index: number) => {
        const taking: Effect.Effect<unknown, LastOwner> = index % 2 === 0 ? members.remove(orgId, userId) : members.changeRole(orgId, userId, "member")
        return Effect.match(taking, { onFailure: ({ _tag }) => _tag, onSuccess: () => "taken" })
      }
      const outcomes = yield* Effect.forEach([owner, ...moreOwners], ({ id }, index) => take(id, index), { concurrency: "unbounded" })
      assert.deepStrictEqual(outcomes.toSorted(), ["LastOwner", "taken", "taken", "taken"])
      assert.strictEqual((yield* members.list(orgId)).filter(({ role }) => role === "owner").length, 1)
    })
  )

  it.effect("no key outlives its membership, even if it is created during the removal", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { orgId, organizations } = yield* setUp("raced")
      const [members, keys] = [yield* Members, yield* ApiKeys]
      for (let round = 0; round < 10; round++) {
        const { id } = yield* organizations.addUser({ orgId, email: "bob@raced.example", name: "Bob", role: "member" })
        const make = Effect.exit(keys.create({ orgId, userId: id, name: "k", scopes: [] }))
        const [, removed] = yield* Effect.all([make, members.remove(orgId, id), make], { concurrency: "unbounded" })
        assert.isTrue(Option.isSome(removed))
      }
      assert.deepStrictEqual<unknown>(yield* sql`SELECT id FROM api_keys WHERE org_id = ${orgId} AND revoked_at IS NULL`, [])
      const { id } = yield* organizations.addUser({ orgId, email: "bob@raced.example", name: "Bob", role: "member" })
      yield* members.remove(orgId, id)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(keys.create({ orgId, userId: id, name: "k", scopes: [] }))))
    })
  )

  it.effect("an invitation is accepted once, by the holder of its token, and an address has at most one", () =>
    Effect.gen(function* () {
      const { orgId } = yield* setUp("inviting")
      const invitations = yield* Invitations
      const send = Effect.flatMap(inDays(1), (expiresAt) => invitations.send({ orgId, email: "bob@inviting.example", role: "member", expiresAt }))
      const sent = yield* Effect.forEach([1, 2, 3], () => Effect.exit(send), { concurrency: "unbounded" })
      const creation = sent.filter(Exit.isSuccess)
      assert.strictEqual(creation.length, 1)
      const token = creation[0]?.value.token ?? Redacted.make("")
      const wrong = Redacted.make(`${Redacted.value(token)}x`)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(invitations.accept(wrong, Option.none()))))
      const accepted = yield* Effect.forEach([1, 2, 3], () => Effect.exit(invitations.accept(token, Option.none())), { concurrency: "unbounded" })
      assert.strictEqual(accepted.filter(Exit.isSuccess).length, 1)
      assert.deepStrictEqual((yield* Effect.flip(send)).reason, "member")
      assert.deepStrictEqual(
        (yield* invitations.list(orgId)).map(({ status }) => status),
        ["accepted"]
      )
    })
  )
})
