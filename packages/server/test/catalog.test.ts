import { assert, describe, it as each, layer } from "@effect/vitest"
import { CatalogModel, earliestCapabilities } from "@seatrial/domain"
import { ApiKeys, type Caller, Database, Organizations } from "@seatrial/store"
import { capabilities, facts, makeCaller, makeServing, makeTestDatabase, withoutDatabase } from "@seatrial/store/testing"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { namesTag } from "../src/entityTag.ts"
import { type Answer, layerStage, layerStageOn, makeTenant, Stage } from "./stage.ts"

const List = Schema.fromJsonString(Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(CatalogModel) }))
const decodeList = Schema.decodeUnknownSync(List, { onExcessProperty: "error" })
const modelsOf = (answer: Answer) => decodeList(answer.text).data
const idsOf = (answer: Answer) => modelsOf(answer).map(({ id }) => id)

const path = "/v1/catalog/models"

/** Asks until the catalog lists these models, and gives that answer. */
const listing = (...ids: ReadonlyArray<string>) =>
  Effect.flatMap(Stage, ({ call }) => call("GET", path)).pipe(
    Effect.repeat({ until: (answer) => JSON.stringify(idsOf(answer)) === JSON.stringify(ids) }),
    Effect.timeout("10 seconds")
  )

const prices = { input_micros_per_mtok: 123_456n, output_micros_per_mtok: 2_500_000n, cache_read_micros_per_mtok: 1n, cache_write_micros_per_mtok: 0n }

/** What publishing does to the rows, and tells. */
const publish = Effect.fnUntraced(function* (caller: Caller, model: { readonly modelId: string; readonly revisionId: string }) {
  const sql = yield* SqlClient.SqlClient
  const { orgId } = caller
  yield* sql`UPDATE revisions SET ${sql.update(prices)} WHERE org_id = ${orgId} AND id = ${model.revisionId}`
  yield* sql`UPDATE models SET visibility = 'public' WHERE org_id = ${orgId} AND id = ${model.modelId}`
  yield* sql`SELECT pg_notify('routes', ${model.revisionId})`
})

const etagOf = (answer: Answer) => String(answer.headers.etag)

layer(layerStage(), { excludeTestServices: true })("the catalog", (it) => {
  it.effect("tells everybody of published models, and of no other", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* SqlClient.SqlClient
      const { caller, organization, secret, user } = yield* makeCaller("publisher")
      const { orgId } = caller
      const key = Redacted.value(secret)
      yield* listing()

      const first = yield* makeServing(caller, "first", "first")
      const hidden = yield* makeServing(caller, "hidden", "hidden")
      yield* publish(caller, first)
      const [model] = modelsOf(yield* listing("first"))
      if (model === undefined) return assert.fail()
      const verified = yield* sql<{ readonly at: string }>`
        SELECT floor(extract(epoch FROM verified_at))::text AS at FROM revisions WHERE org_id = ${orgId} AND id = ${first.revisionId}`
      assert.deepStrictEqual(model, {
        id: "first",
        object: "model",
        created: model.created,
        owned_by: "seatrial",
        display_name: "first",
        hf_repo: "seatrial/tiny-chat",
        hf_revision: facts.commit,
        config_revision: first.revisionId,
        dtype: "float32",
        quantization: "none",
        max_model_len: 2_048,
        context_window: 2_048,
        context_length: 2_048,
        engine: "reference",
        engine_version: "reference-1",
        price_in_micros_per_mtok: "123456",
        price_out_micros_per_mtok: "2500000",
        price_cache_read_micros_per_mtok: "1",
        price_cache_write_micros_per_mtok: "0",
        pricing: { input: 0.123456, output: 2.5 },
        status: "active",
        ...capabilities,
        capabilities_verified_at: Number(verified[0]?.at)
      })
      assert.approximately(model.created, Date.now() / 1000, 120)

      // To its owner it is one of its own, without a price.
      const own = modelsOf(yield* call("GET", "/v1/models", { key }))
      assert.deepStrictEqual(
        own.map(({ id, owned_by }) => [id, owned_by]),
        [
          ["publisher/hidden", "publisher"],
          ["first", "publisher"]
        ]
      )
      const free = { input: 0, output: 0 }
      assert.deepStrictEqual(own[1], {
        ...model,
        owned_by: "publisher",
        price_in_micros_per_mtok: "0",
        price_out_micros_per_mtok: "0",
        price_cache_read_micros_per_mtok: "0",
        price_cache_write_micros_per_mtok: "0",
        pricing: free
      })

      // The newest first, and of one time the later id.
      yield* publish(caller, hidden)
      yield* listing("hidden", "first")
      yield* sql`UPDATE models SET created_at = now() WHERE org_id = ${orgId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("hidden", "first")
      yield* sql`UPDATE models SET created_at = now() + interval '1 hour' WHERE org_id = ${orgId} AND id = ${first.modelId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("first", "hidden")

      const away: ReadonlyArray<readonly [change: string, back: string]> = [
        ["status = 'disabled'", "status = 'active'"],
        ["status = 'pending'", "status = 'active'"],
        ["visibility = 'private'", "visibility = 'public'"],
        ["active_revision_id = NULL", `active_revision_id = '${first.revisionId}'`],
        ["deleted_at = now()", "deleted_at = NULL"]
      ]
      for (const [change, back] of away) {
        for (const [set, ids] of [
          [change, ["hidden"]],
          [back, ["first", "hidden"]]
        ] as const) {
          yield* sql`UPDATE models SET ${sql.literal(set)} WHERE org_id = ${orgId} AND id = ${first.modelId}`
          yield* sql`SELECT pg_notify('routes', '')`
          yield* listing(...ids)
        }
      }

      const organizations = yield* Organizations
      yield* organizations.setStatus(organization.id, "suspended")
      yield* listing()
      // Keys are told of by a notification of their own.
      yield* call("GET", "/v1/models", { key }).pipe(Effect.repeat({ until: ({ status }) => status === 401 }), Effect.timeout("10 seconds"))
      yield* organizations.setStatus(organization.id, "active")
      yield* listing("first", "hidden")

      // A revision that is older than the record of capabilities has those of the first versions.
      yield* sql`UPDATE revisions SET capabilities = NULL WHERE org_id = ${orgId} AND id = ${hidden.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      const derived = yield* call("GET", path).pipe(
        Effect.repeat({ until: (answer) => modelsOf(answer)[1]?.supported_parameters.includes("logit_bias") === false }),
        Effect.timeout("10 seconds")
      )
      assert.deepStrictEqual(modelsOf(derived)[1]?.supported_parameters, earliestCapabilities.supported_parameters)

      // So has one that kept fewer of them than are told of now, for those alone.
      yield* sql`
        UPDATE revisions SET capabilities = ${JSON.stringify({ ...capabilities, supported_endpoints: ["/v1/chat/completions"] })}::jsonb - 'supports_tool_calls'
        WHERE org_id = ${orgId} AND id = ${hidden.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      const completed = yield* call("GET", path).pipe(
        Effect.repeat({ until: (answer) => modelsOf(answer)[1]?.supported_endpoints.length === 1 }),
        Effect.timeout("10 seconds")
      )
      assert.strictEqual(modelsOf(completed)[1]?.supports_tool_calls, false)
      assert.strictEqual(idsOf(yield* call("GET", "/v1/models", { key })).length, 2)

      // A row that cannot be read is left out, and no other with it.
      yield* sql`UPDATE revisions SET runtime = 'unheard_of' WHERE org_id = ${orgId} AND id = ${hidden.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("first")
      assert.deepStrictEqual(idsOf(yield* call("GET", "/v1/models", { key })), ["first"])
      yield* sql`UPDATE revisions SET runtime = 'reference' WHERE org_id = ${orgId} AND id = ${hidden.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("first", "hidden")

      // Nobody else's models are anybody's own.
      const stranger = yield* makeTenant()
      assert.deepStrictEqual(idsOf(yield* call("GET", "/v1/models", { key: stranger.key })), [])
      const keys = yield* ApiKeys
      for (const scope of ["models:read", "inference:write"] as const) {
        const { secret: enough } = yield* keys.create({ orgId, userId: user.id, name: scope, scopes: [scope] })
        assert.deepStrictEqual(idsOf(yield* call("GET", "/v1/models", { key: Redacted.value(enough) })), ["first", "hidden"])
      }

      for (const model of [first, hidden]) yield* sql`UPDATE models SET visibility = 'private' WHERE org_id = ${orgId} AND id = ${model.modelId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing()
    })
  )

  it.effect("is the same whoever asks, also with a key that is none", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      const plain = yield* call("GET", path)
      const headers = [
        { authorization: `Bearer ${key}` },
        { authorization: "Bearer seatrial_wrong" },
        { authorization: "Bearer" },
        { authorization: "Basic !" },
        { authorization: "\u00ff\u00fe" },
        { authorization: "" },
        { "x-api-key": "x", cookie: "a=b" }
      ]
      for (const given of headers) {
        const answer = yield* call("GET", path, { headers: given })
        assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [200, plain.text, etagOf(plain)], JSON.stringify(given))
      }
    })
  )

  it.effect("takes no query parameter, nor does the list of own models", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      for (const target of [path, "/v1/models"]) {
        for (const query of ["limit=1", "limit=", "x", "a=1&a=2"]) {
          const answer = yield* call("GET", `${target}?${query}`, { key })
          assert.strictEqual(answer.status, 400, `${target}?${query}`)
          assert.include(answer.text, '"code":"unknown_parameter"')
          assert.isUndefined(answer.headers.etag)
        }
      }
    })
  )

  it.effect("is sent once for each change of it", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* SqlClient.SqlClient
      const { caller } = yield* makeCaller("changing")
      const served = yield* makeServing(caller, "changing", "changing")
      const empty = yield* listing()
      const tag = etagOf(empty)
      assert.match(tag, /^"[\w-]{43}"$/)
      assert.strictEqual(empty.headers["cache-control"], "public, max-age=30")
      assert.strictEqual(empty.headers["content-type"], "application/json")
      const asked = (known: string, method = "GET") => call(method, path, { headers: { "if-none-match": known } })
      for (const method of ["GET", "HEAD"]) {
        for (const known of [tag, `W/${tag}`, "*", `"other", ${tag}`, `"other",W/${tag} , "third"`]) {
          const answer = yield* asked(known, method)
          assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [304, "", tag], known)
          assert.strictEqual(answer.headers["cache-control"], "public, max-age=30")
        }
        for (const known of ['"other"', tag.slice(1, -1), "", "W/", '"']) {
          const answer = yield* asked(known, method)
          assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [200, method === "HEAD" ? "" : empty.text, tag], known)
          assert.strictEqual(answer.headers["content-length"], String(Buffer.byteLength(empty.text)))
        }
      }

      yield* publish(caller, served)
      const changed = yield* listing("changing")
      assert.notStrictEqual(etagOf(changed), tag)
      assert.strictEqual((yield* asked(tag)).text, changed.text)
      yield* sql`UPDATE models SET visibility = 'private' WHERE org_id = ${caller.orgId}`
      yield* sql`SELECT pg_notify('routes', '')`
      assert.strictEqual(etagOf(yield* listing()), tag)
    })
  )
})

class Address extends Context.Service<Address, Redacted.Redacted<string>>()("seatrial/test/Address") {
  static readonly layer = Layer.effect(Address, makeTestDatabase(inject("postgres")))
}
const layerOwn = Layer.unwrap(Effect.map(Address, (url) => Database.layerUrl(url)))

layer(layerStageOn(layerOwn.pipe(Layer.provide(Address.layer)), { SERVER_PLATFORM_NAME: "acme" }).pipe(Layer.provideMerge(Address.layer)), {
  excludeTestServices: true
})("the catalog while Postgres is away", (it) => {
  it.effect("is answered from memory, and is read anew once it is back", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const sql = yield* SqlClient.SqlClient
      const { caller, secret } = yield* makeCaller("steady")
      const served = yield* makeServing(caller, "steady", "steady")
      yield* publish(caller, served)
      const before = yield* listing("steady")
      assert.strictEqual(modelsOf(before)[0]?.owned_by, "acme")
      yield* withoutDatabase(
        inject("postgres"),
        yield* Address,
        Effect.gen(function* () {
          // What asks the database has nothing to answer with.
          const own = yield* call("GET", "/v1/models", { key: Redacted.value(secret) })
          assert.deepStrictEqual([own.status, own.headers["retry-after"]], [503, "1"], own.text)
          for (let asked = 0; asked < 20; asked++) {
            const answer = yield* call("GET", path)
            assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [200, before.text, etagOf(before)])
          }
        })
      )
      // What changes while nobody listens is seen too: nothing is told of this change.
      yield* sql`UPDATE models SET visibility = 'private' WHERE org_id = ${caller.orgId}`.pipe(Effect.eventually, Effect.timeout("10 seconds"))
      yield* listing()
    })
  )
})

describe("an If-None-Match", () => {
  const tag = '"abc"'
  const cases: ReadonlyArray<readonly [header: string, names: boolean]> = [
    [tag, true],
    [`W/${tag}`, true],
    [` * `, true],
    [`"x","abc"`, true],
    [`"x" , W/"abc"`, true],
    [`"a,b", "abc"`, true],
    ["abc", false],
    [`"abc`, false],
    [`"ABC"`, false],
    [`"x", *`, false],
    ["", false]
  ]
  for (const [header, names] of cases) each(`${header} ${names ? "names" : "does not name"} ${tag}`, () => assert.strictEqual(namesTag(header, tag), names))
})
