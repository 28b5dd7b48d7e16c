import { createCipheriv } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import type { HostClass } from "@seatrial/domain"
import { ConfigProvider, Effect, Exit, Layer, Option, Redacted } from "effect"
import { HostClasses, HubConnections, Organizations } from "../src/index.ts"
import { seal, unseal } from "../src/sealing.ts"
import { encryptionKey, layerDatabase, layerStore } from "./stage.ts"
import { makeCaller } from "./support/index.ts"

const hostClass = (name: string, over: Partial<HostClass> = {}): HostClass => ({
  name,
  runtimes: [{ runtime: "reference", image: "seatrial/reference:1" }],
  gpu_pool: "Simulated-GPU",
  gpu_count: 1,
  gpu_memory_bytes: 85_899_345_920,
  price_per_gpu_hour_micros: "2000000",
  simulated: true,
  ...over
})

layer(layerStore, { excludeTestServices: true })("HostClasses", (it) => {
  it.effect("replaceAll replaces the stored set and does not write unchanged classes", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const hostClasses = yield* HostClasses
      const versions = sql`SELECT name, xmin::text FROM host_classes ORDER BY name`
      yield* hostClasses.replaceAll([hostClass("b"), hostClass("a")])
      assert.deepStrictEqual(yield* hostClasses.list, [hostClass("a"), hostClass("b")])
      const before = yield* versions
      yield* hostClasses.replaceAll([hostClass("a"), hostClass("b")])
      assert.deepStrictEqual(yield* versions, before)
      yield* hostClasses.replaceAll([hostClass("b", { gpu_count: 2 }), hostClass("c")])
      assert.deepStrictEqual(yield* hostClasses.list, [hostClass("b", { gpu_count: 2 }), hostClass("c")])
      const capacity = { gpus: 8, free_gpus: 4, free_engines: 2 }
      yield* hostClasses.recordCapacities(
        new Map([
          ["c", capacity],
          ["gone", capacity]
        ])
      )
      assert.deepStrictEqual(yield* hostClasses.capacities, new Map([["c", capacity]]))
      const counted = yield* versions
      yield* hostClasses.recordCapacities(new Map([["c", capacity]]))
      yield* hostClasses.replaceAll([hostClass("b", { gpu_count: 2 }), hostClass("c")])
      assert.deepStrictEqual(yield* versions, counted, "what did not change is not written")
      yield* hostClasses.replaceAll([])
      assert.deepStrictEqual(yield* hostClasses.list, [])
    })
  )
})

layer(layerStore, { excludeTestServices: true })("HubConnections", (it) => {
  it.effect("a token is readable only for its user in its organization, and not readable in the database", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const connections = yield* HubConnections
      const organizations = yield* Organizations
      const mine = yield* makeCaller("mine")
      const theirs = yield* makeCaller("theirs")
      const other = yield* organizations.addUser({ orgId: mine.caller.orgId, email: "b@mine.example", name: "B", role: "member" })
      const token = "hf_sécret-token"
      yield* connections.set(mine.caller.orgId, mine.user.id, Redacted.make("old"))
      yield* connections.set(mine.caller.orgId, mine.user.id, Redacted.make(token))
      assert.strictEqual(Redacted.value(Option.getOrThrow(yield* connections.find(mine.caller.orgId, mine.user.id))), token)
      assert.isTrue(Option.isNone(yield* connections.find(mine.caller.orgId, other.id)))
      assert.isTrue(Option.isNone(yield* connections.find(theirs.caller.orgId, mine.user.id)))
      const [row] = yield* sql<{ sealed: Uint8Array }>`SELECT sealed_token AS sealed FROM hub_connections WHERE org_id = ${mine.caller.orgId}`
      assert.isFalse(Buffer.from(row?.sealed ?? []).includes("cret-token"))
      // After it is moved to another user in the database, it cannot be decrypted.
      yield* sql`UPDATE hub_connections SET user_id = ${other.id} WHERE org_id = ${mine.caller.orgId}`
      assert.isTrue(Exit.isFailure(yield* Effect.exit(connections.find(mine.caller.orgId, other.id))))
      yield* connections.remove(mine.caller.orgId, other.id)
      assert.isTrue(Option.isNone(yield* connections.find(mine.caller.orgId, other.id)))
    })
  )
})

layer(layerStore, { excludeTestServices: true })("The encryption key", (it) => {
  it.effect("is rotated by encrypting every token again, in batches that continue after an interruption", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const [organizations, old] = [yield* Organizations, yield* HubConnections]
      const { id: orgId } = yield* organizations.create({ slug: "acme", name: "Acme" })
      const fresh = Buffer.alloc(32, 9).toString("base64")
      const withKeys = (keys: string) =>
        Effect.provide(
          Layer.fresh(HubConnections.layerSql).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: keys }))))
        )
      const users = yield* Effect.forEach(Array.from({ length: 230 }), (_, index) =>
        organizations.addUser({ orgId, email: `user${index}@acme.example`, name: "U", role: "member" })
      )
      yield* Effect.forEach(users, ({ id }, index) => old.set(orgId, id, Redacted.make(`hf_${index}`)))
      // One token that no key decrypts, and a database error after the first batch.
      const [lost, late] = [users[50], users[150]]
      if (lost === undefined || late === undefined) return assert.fail("no users")
      yield* old
        .set(orgId, lost.id, Redacted.make("hf_lost"))
        .pipe(
          Effect.andThen(
            sql`UPDATE hub_connections SET sealed_token = ${seal([Buffer.alloc(32, 1)], "x", "y")} WHERE org_id = ${orgId} AND user_id = ${lost.id}`
          )
        )
      yield* sql`ALTER TABLE hub_connections ADD CONSTRAINT late CHECK (user_id <> ${sql.literal(`'${late.id}'`)} OR length(sealed_token) = 0) NOT VALID`
      const rotate = Effect.flatMap(HubConnections, (connections) => connections.rotateKey).pipe(withKeys(`${fresh}, ${encryptionKey}`))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(rotate)))
      yield* sql`ALTER TABLE hub_connections DROP CONSTRAINT late`
      assert.deepStrictEqual(yield* rotate, { resealed: 130, unreadable: 1 })
      assert.deepStrictEqual(yield* rotate, { resealed: 0, unreadable: 1 })
      yield* Effect.gen(function* () {
        const connections = yield* HubConnections
        const tokens = yield* Effect.forEach(
          users.filter((user) => user !== lost),
          ({ id }) => connections.find(orgId, id)
        )
        assert.deepStrictEqual(
          tokens.map((token) => Redacted.value(Option.getOrThrow(token))),
          users.flatMap((user, index) => (user === lost ? [] : [`hf_${index}`]))
        )
        assert.strictEqual((yield* connections.list(orgId)).filter(({ currentKey }) => currentKey).length, 229)
      }).pipe(withKeys(fresh))
    })
  )
})

describe("sealing", () => {
  const key = Buffer.from(encryptionKey, "base64")
  const other = Buffer.alloc(32, 8)

  /** The first format of sealed values: a 1, nonce, tag, ciphertext, with the owner as additional data. */
  const sealAsBefore = (text: string, owner: string) => {
    const cipher = createCipheriv("aes-256-gcm", key, Buffer.alloc(12, 3))
    cipher.setAAD(Buffer.from(owner))
    const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
    return Buffer.concat([Uint8Array.of(1), Buffer.alloc(12, 3), cipher.getAuthTag(), sealed])
  }

  it("seals the same text differently each time, and detects any changed byte", () => {
    const sealed = seal([key], "token", "org/user")
    assert.notDeepEqual(sealed, seal([key], "token", "org/user"))
    assert.strictEqual(unseal([key], sealed, "org/user"), "token")
    for (let index = 0; index < sealed.length; index++) {
      const tampered = Uint8Array.from(sealed, (byte, at) => (at === index ? byte ^ 1 : byte))
      assert.throws(() => unseal([key], tampered, "org/user"))
    }
    assert.throws(() => unseal([key], sealed.subarray(0, 20), "org/user"))
    assert.throws(() => unseal([other], sealed, "org/user"))
  })

  it("decrypts with an earlier key, and tries every key for values without a key ID", () => {
    const sealed = seal([key], "token", "org/user")
    assert.strictEqual(unseal([other, key], sealed, "org/user"), "token")
    assert.strictEqual(unseal([other, key], sealAsBefore("token", "org/user"), "org/user"), "token")
    assert.throws(() => unseal([other], sealAsBefore("token", "org/user"), "org/user"))
    assert.throws(() => unseal([key], sealAsBefore("token", "org/user"), "org/other"))
    assert.isFalse(Buffer.from(sealed).includes(key))
  })

  it.effect("a key of another length is rejected at the start", () =>
    Effect.gen(function* () {
      const settings = ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(16).toString("base64") }))
      const exit = yield* Effect.exit(Effect.scoped(Layer.build(HubConnections.layerSql.pipe(Layer.provide([layerDatabase, settings])))))
      assert.isTrue(Exit.isFailure(exit))
    })
  )
})
