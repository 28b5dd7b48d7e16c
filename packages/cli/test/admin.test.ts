import { userInfo } from "node:os"
import { assert, describe, it, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { Database, Organizations } from "@seatrial/store"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Env, noTrace, parse, seatrial, seatrialProcess } from "./runCommand.ts"

const KeyMade = Schema.Struct({ id: Schema.String, secret: Schema.String })
const Invited = Schema.Struct({ id: Schema.String, token: Schema.String })
const Keys = Schema.Array(Schema.Record(Schema.String, Schema.Unknown))

describe("seatrial admin without its Postgres", () => {
  it.live("reports in a sentence that Postgres does not answer", () =>
    Effect.gen(function* () {
      const ran = yield* seatrialProcess(["admin", "orgs", "list", "--json"], { DATABASE_URL: "postgres://a:secret@127.0.0.1:9/none" })
      assert.strictEqual(ran.code, 1)
      assert.strictEqual(ran.out, "")
      assert.match(ran.err, /Postgres cannot be used/)
      assert.notInclude(ran.err, "secret")
      noTrace(ran)
    })
  )
})

const decodeText = <S extends Schema.Decoder<unknown>>(schema: S, text: string): S["Type"] => Schema.decodeUnknownSync(schema)(parse(text))

/** An organization with an owner, created without the command. */
const makeOrganization = Effect.fnUntraced(function* (slug: string) {
  const { DATABASE_URL = "" } = yield* Env
  yield* Effect.gen(function* () {
    const organizations = yield* Organizations
    const { id: orgId } = yield* organizations.create({ slug, name: slug })
    yield* organizations.addUser({ orgId, email: `ann@${slug}.example`, name: "Ann", role: "owner" })
  }).pipe(Effect.provide(Organizations.layerSql.pipe(Layer.provide([Database.layerUrl(Redacted.make(DATABASE_URL), { poolSize: 1 }), Ids.layer]))))
})

layer(Env.layer)("seatrial admin", (it) => {
  it.effect("records the administrator in audit events: SEATRIAL_ADMIN, otherwise the operating system account", () =>
    Effect.gen(function* () {
      const env = yield* Env
      yield* makeOrganization("audited")
      const rename = (name: string, more: Readonly<Record<string, string>>) => seatrial(["admin", "orgs", "rename", "audited", name], { ...env, ...more })
      assert.strictEqual((yield* rename("First", { SEATRIAL_ADMIN: "ada@platform.example" })).code, 0)
      assert.strictEqual((yield* rename("Second", {})).code, 0)
      const refused = yield* rename("Third", { SEATRIAL_ADMIN: "a".repeat(59) })
      assert.strictEqual(refused.code, 2)
      assert.match(refused.err, /SEATRIAL_ADMIN/)
      // An image's account is not a name.
      const inPod = yield* rename("Fourth", { KUBERNETES_SERVICE_HOST: "10.0.0.1" })
      assert.deepStrictEqual([inPod.code, inPod.out], [2, ""])
      assert.match(inPod.err, /Set SEATRIAL_ADMIN to your name/)
      const actors = yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        return yield* sql`
          SELECT actor_kind, actor_user_id FROM audit_events e JOIN organizations o ON o.id = e.org_id
          WHERE slug = 'audited' AND resource_type = 'org' AND action = 'updated' ORDER BY e.created_at`
      }).pipe(Effect.provide(Database.layerUrl(Redacted.make(env.DATABASE_URL ?? ""), { poolSize: 1 })))
      const account = process.env.SUDO_USER ?? userInfo().username
      assert.deepStrictEqual(actors, [
        { actor_kind: "admin", actor_user_id: "admin:ada@platform.example" },
        { actor_kind: "admin", actor_user_id: `admin:${account}` }
      ])
    })
  )

  it.effect("sets and shows the spend limits of an organization and its keys, and refuses invalid limits", () =>
    Effect.gen(function* () {
      const env = yield* Env
      yield* makeOrganization("limited")
      const admin = (...args: ReadonlyArray<string>) => seatrial(["admin", ...args, "--json"], env)
      const created = decodeText(
        KeyMade,
        (yield* admin("keys", "create", "--org", "limited", "--email", "ann@limited.example", "--scope", "requests:read")).out
      )
      const record = Schema.Record(Schema.String, Schema.Unknown)
      const print = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
        const ran = yield* admin(...args)
        assert.strictEqual(ran.code, 0, ran.err)
        return ran.out
      })
      const set = decodeText(record, yield* print("limits", "set", "--org", "limited", "--day", "5000000", "--month", "50000000"))
      assert.deepInclude(set, { org: "limited", day_limit_micros: "5000000", month_limit_micros: "50000000", mode: "invoiced" })
      const ofKey = yield* print("limits", "set", "--org", "limited", "--key", created.id, "--day", "7")
      assert.deepStrictEqual(decodeText(record, ofKey), { org: "limited", api_key_id: created.id, day_limit_micros: "7", month_limit_micros: null })
      // Limits that are not set keep their values.
      assert.deepInclude(decodeText(record, yield* print("limits", "set", "--org", "limited", "--month", "none")), {
        day_limit_micros: "5000000",
        month_limit_micros: null
      })
      assert.deepInclude(decodeText(record, yield* print("billing", "mode", "prepaid", "--org", "limited")), { mode: "prepaid", day_limit_micros: "5000000" })
      assert.deepInclude(decodeText(record, yield* print("limits", "show", "--org", "limited")), {
        mode: "prepaid",
        day_limit_micros: "5000000",
        gpu_limit: null
      })
      const spent = decodeText(Keys, yield* print("limits", "spent", "--org", "limited"))
      const row = (allowance: string, limit: string, key: string | null = null) => ({ api_key_id: key, allowance, limit_micros: limit, spent_micros: "0" })
      assert.deepStrictEqual(
        spent.map(({ alert_percent, ...shown }) => shown),
        [row("balance", "0"), row("day", "5000000"), row("day", "7", created.id)]
      )

      const wrong: ReadonlyArray<readonly [code: number, says: RegExp, args: ReadonlyArray<string>]> = [
        [2, /--gpus, --day or --month/, ["limits", "set", "--org", "limited"]],
        [2, /no GPU limit/, ["limits", "set", "--org", "limited", "--key", created.id, "--gpus", "1"]],
        [2, /whole micro-dollars/, ["limits", "set", "--org", "limited", "--day", "1.5"]],
        [1, /no live key/, ["limits", "set", "--org", "limited", "--key", `${created.id.slice(0, -1)}${created.id.endsWith("0") ? "1" : "0"}`, "--day", "1"]]
      ]
      for (const [code, says, args] of wrong) {
        const ran = yield* admin(...args)
        assert.deepStrictEqual([ran.code, ran.out], [code, ""], args.join(" "))
        assert.match(ran.err, says)
      }
      assert.deepInclude(decodeText(record, yield* print("limits", "show", "--org", "limited")), { day_limit_micros: "5000000" })
    })
  )

  it.effect(
    "shows a key's secret once, rotates it, and revokes it only if confirmed",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        yield* makeOrganization("acme")
        const admin = (...args: ReadonlyArray<string>) => seatrial(["admin", ...args, "--json"], env)
        const [twice, made] = yield* Effect.all(
          [admin("orgs", "create", "acme"), admin("keys", "create", "--org", "acme", "--email", "ann@acme.example", "--scope", "requests:read")],
          { concurrency: 2 }
        )
        assert.strictEqual(twice.code, 1)
        assert.strictEqual(twice.out, "")
        assert.match(twice.err, /acme already exists/)
        noTrace(twice)
        const { id, secret } = Schema.decodeUnknownSync(KeyMade)(parse(made.out))
        assert.match(secret, /^seatrial_/)
        const [unconfirmed, rotated] = yield* Effect.all(
          [admin("keys", "revoke", "--org", "acme", id), admin("keys", "rotate", "--org", "acme", id, "--overlap", "2h")],
          { concurrency: 2 }
        )
        assert.strictEqual(unconfirmed.code, 2)
        assert.strictEqual(unconfirmed.out, "")
        assert.match(unconfirmed.err, /--yes/)
        const next = Schema.decodeUnknownSync(KeyMade)(parse(rotated.out))
        assert.strictEqual(next.id, id)
        assert.notStrictEqual(next.secret, secret)

        const listed = yield* admin("keys", "list", "--org", "acme")
        const [key] = Schema.decodeUnknownSync(Keys)(parse(listed.out))
        assert.include(key, { id, last_four: next.secret.slice(-4), revoked_at: null })
        assert.isString(key?.previous_secret_expires_at)
        for (const secretText of [secret, next.secret]) assert.notInclude(listed.out, secretText)
        assert.strictEqual((yield* admin("keys", "revoke", "--org", "acme", id, "--yes")).code, 0)
      }),
    // The test starts several processes on a machine that other tests share.
    120_000
  )

  it.effect(
    "reads an invitation's token from the environment, protects the last owner, and prints tables for people",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        yield* makeOrganization("beta")
        const sent = yield* seatrial(["admin", "invitations", "send", "--org", "beta", "--email", "Bob@Example.org", "--json"], env)
        const { token } = Schema.decodeUnknownSync(Invited)(parse(sent.out))
        const [accepted, removed] = yield* Effect.all(
          [
            seatrial(["admin", "invitations", "accept", "--name", "Bob", "--json"], { ...env, SEATRIAL_INVITATION: token }),
            seatrial(["admin", "members", "remove", "--org", "beta", "--email", "ann@beta.example", "--yes"], env)
          ],
          { concurrency: 2 }
        )
        assert.include(parse(accepted.out), { email: "bob@example.org", name: "Bob", role: "member" })
        assert.strictEqual(removed.code, 1)
        assert.match(removed.err, /last owner/)
        const users = yield* seatrial(["admin", "users", "list", "--search", "BOB"], env)
        assert.match(users.out, /^ID +EMAIL +NAME +ORGANIZATIONS/)
        assert.match(users.out, /bob@example\.org +Bob +beta/)
      }),
    120_000
  )

  it.effect(
    "lists the usage of all organizations or of one as digits, and reports invalid groupings",
    () =>
      Effect.gen(function* () {
        const { DATABASE_URL = "" } = yield* Env
        yield* makeOrganization("gamma")
        const [wrong, one, nobody] = yield* Effect.all(
          [
            seatrial(["usage", "--by", "model,hour"], { DATABASE_URL }),
            seatrial(["usage", "--org", "gamma", "--by", "model,key,day", "--from", "2026-01-01", "--to", "2026-12-31", "--json"], { DATABASE_URL }),
            seatrial(["usage", "--org", "nobody"], { DATABASE_URL })
          ],
          { concurrency: 3 }
        )
        assert.strictEqual(wrong.code, 2)
        assert.match(wrong.err, /model, key and day/)
        assert.deepStrictEqual([one.code, parse(one.out)], [0, []])
        assert.match(nobody.err, /no organization nobody/)
        for (const ran of [wrong, nobody]) noTrace(ran)
      }),
    120_000
  )

  it.effect(
    "requires the encryption key only for hub connections, and reports unknown users and organizations",
    () =>
      Effect.gen(function* () {
        const { DATABASE_URL = "" } = yield* Env
        const [nobody, hub, broken] = yield* Effect.all(
          [
            seatrial(["admin", "keys", "list", "--org", "nobody", "--json"], { DATABASE_URL }),
            seatrialProcess(["admin", "hub-connections", "list", "--org", "acme"], { DATABASE_URL }),
            seatrial(["admin", "hub-connections", "set", "--org", "acme", "--email", "a@example.com"], {
              DATABASE_URL,
              HF_TOKEN: "hf_x\r\nx-evil: 1",
              SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64")
            })
          ],
          { concurrency: 2 }
        )
        assert.strictEqual(broken.code, 2, broken.err)
        assert.match(broken.err, /line break/)
        assert.strictEqual(nobody.code, 1)
        assert.match(nobody.err, /no organization nobody/)
        noTrace(nobody)
        assert.strictEqual(hub.code, 2)
        assert.match(hub.err, /SEATRIAL_ENCRYPTION_KEY/)
        noTrace(hub)
      }),
    60_000
  )
})
