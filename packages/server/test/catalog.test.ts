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

/** Polls until the catalog lists exactly these models, and returns that response. */
const listing = (...ids: ReadonlyArray<string>) =>
  Effect.flatMap(Stage, ({ call }) => call("GET", path)).pipe(
    Effect.repeat({ until: (answer) => JSON.stringify(idsOf(answer)) === JSON.stringify(ids) }),
    Effect.timeout("10 seconds")
  )

const prices = { input_micros_per_mtok: 123_456n, output_micros_per_mtok: 2_500_000n, cache_read_micros_per_mtok: 1n, cache_write_micros_per_mtok: 0n }

/** Publishes a model by its rows and the notification. */
const publish = Effect.fnUntraced(function* (caller: Caller, model: { readonly modelId: string; readonly revisionId: string }) {
  const sql = yield* SqlClient.SqlClient
  const { orgId } = caller
  yield* sql`UPDATE revisions SET ${sql.update(prices)} WHERE org_id = ${orgId} AND id = ${model.revisionId}`
  yield* sql`UPDATE models SET visibility = 'public' WHERE org_id = ${orgId} AND id = ${model.modelId}`
  yield* sql`SELECT pg_notify('routes', ${model.revisionId})`
})

const etagOf = (answer: Answer) => String(answer.headers.etag)

layer(layerStage(), { excludeTestServices: true })("the catalog", (it) => {
  it.effect("lists the published models and no others, to everyone", () =>
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

      // The owner sees it as one of its own models, without prices.
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

      // Newest first. Models of the same time are ordered by ID, descending.
      yield* publish(caller, hidden)
      yield* listing("hidden", "first")
      yield* sql`UPDATE models SET created_at = now() WHERE org_id = ${orgId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("hidden", "first")
      yield* sql`UPDATE models SET created_at = now() + interval '1 hour' WHERE org_id = ${orgId} AND id = ${first.modelId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("first", "hidden")

      const removals: ReadonlyArray<readonly [change: string, back: string]> = [
        ["status = 'disabled'", "status = 'active'"],
        ["status = 'pending'", "status = 'active'"],
        ["visibility = 'private'", "visibility = 'public'"],
        ["active_revision_id = NULL", `active_revision_id = '${first.revisionId}'`],
        ["deleted_at = now()", "deleted_at = NULL"]
      ]
      for (const [change, back] of removals) {
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
      // Key changes have a separate notification.
      yield* call("GET", "/v1/models", { key }).pipe(Effect.repeat({ until: ({ status }) => status === 401 }), Effect.timeout("10 seconds"))
      yield* organizations.setStatus(organization.id, "active")
      yield* listing("first", "hidden")

      // A revision without recorded capabilities gets those of the first versions.
      yield* sql`UPDATE revisions SET capabilities = NULL WHERE org_id = ${orgId} AND id = ${hidden.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      const derived = yield* call("GET", path).pipe(
        Effect.repeat({ until: (answer) => modelsOf(answer)[1]?.supported_parameters.includes("logit_bias") === false }),
        Effect.timeout("10 seconds")
      )
      assert.deepStrictEqual(modelsOf(derived)[1]?.supported_parameters, earliestCapabilities.supported_parameters)

      // A revision with fewer recorded capabilities gets defaults for the missing ones only.
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

      // A row that cannot be decoded is omitted. All other rows stay.
      yield* sql`UPDATE revisions SET runtime = 'unheard_of' WHERE org_id = ${orgId} AND id = ${hidden.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("first")
      assert.deepStrictEqual(idsOf(yield* call("GET", "/v1/models", { key })), ["first"])
      yield* sql`UPDATE revisions SET runtime = 'reference' WHERE org_id = ${orgId} AND id = ${hidden.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* listing("first", "hidden")

      // An organization sees only its own models.
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

  it.effect("is the same for every caller, even with an invalid key", () =>
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
      for (const headersOfCall of headers) {
        const answer = yield* call("GET", path, { headers: headersOfCall })
        assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [200, plain.text, etagOf(plain)], JSON.stringify(headersOfCall))
      }
    })
  )

  it.effect("accepts no query parameters, and neither does the list of own models", () =>
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

  it.effect("is sent once for each change, and revalidated with its entity tag", () =>
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
      const getIfNoneMatch = (known: string, method = "GET") => call(method, path, { headers: { "if-none-match": known } })
      for (const method of ["GET", "HEAD"]) {
        for (const known of [tag, `W/${tag}`, "*", `"other", ${tag}`, `"other",W/${tag} , "third"`]) {
          const answer = yield* getIfNoneMatch(known, method)
          assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [304, "", tag], known)
          assert.strictEqual(answer.headers["cache-control"], "public, max-age=30")
        }
        for (const known of ['"other"', tag.slice(1, -1), "", "W/", '"']) {
          const answer = yield* getIfNoneMatch(known, method)
          assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [200, method === "HEAD" ? "" : empty.text, tag], known)
          assert.strictEqual(answer.headers["content-length"], String(Buffer.byteLength(empty.text)))
        }
      }

      yield* publish(caller, served)
      const changed = yield* listing("changing")
      assert.notStrictEqual(etagOf(changed), tag)
      assert.strictEqual((yield* getIfNoneMatch(tag)).text, changed.text)
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
})("the catalog while Postgres is unavailable", (it) => {
  it.effect("is served from memory, and is read again after the database returns", () =>
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
          // Operations that need the database fail.
          const own = yield* call("GET", "/v1/models", { key: Redacted.value(secret) })
          assert.deepStrictEqual([own.status, own.headers["retry-after"]], [503, "1"], own.text)
          for (let attempt = 0; attempt < 20; attempt++) {
            const answer = yield* call("GET", path)
            assert.deepStrictEqual([answer.status, answer.text, etagOf(answer)], [200, before.text, etagOf(before)])
          }
        })
      )
      // A change without notification is visible as well, because the catalog is read again.
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
