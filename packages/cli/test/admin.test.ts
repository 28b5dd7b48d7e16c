import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Env, noTrace, parse, seatrial } from "./runCommand.ts"

const KeyMade = Schema.Struct({ id: Schema.String, secret: Schema.String })
const Invited = Schema.Struct({ id: Schema.String, token: Schema.String })
const Keys = Schema.Array(Schema.Record(Schema.String, Schema.Unknown))

describe("seatrial admin without its Postgres", () => {
  it.live("says in a sentence that it does not answer", () =>
    Effect.gen(function* () {
      const ran = yield* seatrial(["admin", "orgs", "list", "--json"], { DATABASE_URL: "postgres://a:secret@127.0.0.1:9/none" })
      assert.strictEqual(ran.code, 1)
      assert.strictEqual(ran.out, "")
      assert.match(ran.err, /Postgres cannot be used/)
      assert.notInclude(ran.err, "secret")
      noTrace(ran)
    })
  )
})

layer(Env.layer)("seatrial admin", (it) => {
  it.effect(
    "makes an organization, a member and a key whose secret is shown once; rotates it; and revokes only what was confirmed",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        const admin = (...args: ReadonlyArray<string>) => seatrial(["admin", ...args], env)
        const org = yield* admin("orgs", "create", "acme", "--json")
        assert.strictEqual(org.code, 0, org.err)
        assert.include(parse(org.out), { slug: "acme", status: "active", first_purchase: false })
        const twice = yield* admin("orgs", "create", "acme", "--json")
        assert.strictEqual(twice.code, 1)
        assert.strictEqual(twice.out, "")
        assert.match(twice.err, /acme already/)
        assert.strictEqual((yield* admin("members", "add", "--org", "acme", "--email", "ann@example.org", "--role", "owner")).code, 0)

        const made = yield* admin("keys", "create", "--org", "acme", "--email", "ann@example.org", "--scope", "requests:read", "--json")
        const { id, secret } = Schema.decodeUnknownSync(KeyMade)(parse(made.out))
        assert.match(secret, /^seatrial_/)
        const unconfirmed = yield* admin("keys", "revoke", "--org", "acme", id, "--json")
        assert.strictEqual(unconfirmed.code, 2)
        assert.strictEqual(unconfirmed.out, "")
        assert.match(unconfirmed.err, /--yes/)
        const rotated = yield* admin("keys", "rotate", "--org", "acme", id, "--overlap", "2h", "--json")
        const next = Schema.decodeUnknownSync(KeyMade)(parse(rotated.out))
        assert.strictEqual(next.id, id)
        assert.notStrictEqual(next.secret, secret)

        const listed = yield* admin("keys", "list", "--org", "acme", "--json")
        const [key] = Schema.decodeUnknownSync(Keys)(parse(listed.out))
        assert.include(key, { id, last_four: next.secret.slice(-4), revoked_at: null })
        assert.isString(key?.previous_secret_expires_at)
        for (const told of [secret, next.secret]) assert.notInclude(listed.out, told)
        assert.strictEqual((yield* admin("keys", "revoke", "--org", "acme", id, "--yes")).code, 0)
        const again = yield* admin("keys", "revoke", "--org", "acme", id, "--yes")
        assert.strictEqual(again.code, 1)
        assert.match(again.err, /no live key/)
        noTrace(again)
      }),
    // Ten processes one after another, on a machine that other tests load too.
    120_000
  )

  it.effect(
    "takes an invitation's token from the environment, keeps the last owner, and reads tables and JSON alike",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        const admin = (...args: ReadonlyArray<string>) => seatrial(["admin", ...args], env)
        assert.strictEqual((yield* admin("orgs", "create", "beta")).code, 0)
        const sent = yield* admin("invitations", "send", "--org", "beta", "--email", "Bob@Example.org", "--role", "owner", "--json")
        const { token } = Schema.decodeUnknownSync(Invited)(parse(sent.out))
        const accepted = yield* seatrial(["admin", "invitations", "accept", "--name", "Bob", "--json"], { ...env, SEATRIAL_INVITATION: token })
        assert.include(parse(accepted.out), { email: "bob@example.org", name: "Bob", role: "owner" })
        const [removed, users, wrong, limits, resealed] = yield* Effect.all(
          [
            admin("members", "remove", "--org", "beta", "--email", "bob@example.org", "--yes"),
            admin("users", "list", "--search", "BOB"),
            admin("keys", "rotate", "--org", "beta", "key_0", "--overlap", "8d"),
            admin("limits", "set", "--org", "beta", "--gpus", "4", "--json"),
            admin("hub-connections", "rotate-key", "--json")
          ],
          { concurrency: 2 }
        )
        assert.strictEqual(removed.code, 1)
        assert.match(removed.err, /last owner/)
        assert.match(users.out, /^ID +EMAIL +NAME +ORGANIZATIONS/)
        assert.match(users.out, /bob@example\.org +Bob +beta/)
        assert.strictEqual(wrong.code, 2)
        assert.deepStrictEqual(parse(limits.out), { org: "beta", gpu_limit: 4, billing: "active" })
        assert.deepStrictEqual(parse(resealed.out), { resealed: 0, unreadable: 0 })
      }),
    120_000
  )

  it.effect("needs the encryption key only for hub connections, and names who is not there", () =>
    Effect.gen(function* () {
      const env = yield* Env
      const { DATABASE_URL = "" } = env
      const [listed, hub, nobody] = yield* Effect.all(
        [
          seatrial(["admin", "orgs", "list", "--json"], { DATABASE_URL }),
          seatrial(["admin", "hub-connections", "list", "--org", "acme"], { DATABASE_URL }),
          seatrial(["admin", "keys", "list", "--org", "nobody"], env)
        ],
        { concurrency: 2 }
      )
      assert.strictEqual(listed.code, 0, listed.err)
      assert.strictEqual(hub.code, 2)
      assert.match(hub.err, /SEATRIAL_ENCRYPTION_KEY/)
      assert.strictEqual(nobody.code, 1)
      assert.match(nobody.err, /nobody/)
      noTrace(nobody)
    })
  )
})
