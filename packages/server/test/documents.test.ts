import { createHash } from "node:crypto"
import { assert, describe, it as each, layer } from "@effect/vitest"
import { requestVocabulary } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { operations, schemaFault } from "./conformance.ts"
import { jsonOf, layerStage, Stage } from "./stage.ts"

const Examples = Schema.Record(Schema.String, Schema.Struct({ value: Schema.Unknown }))
type Content = NonNullable<(typeof operations)[number]["requestBody"]>["content"]

const wrong = (where: string, content: Content | undefined): ReadonlyArray<string> =>
  Object.values(content ?? {}).flatMap(({ examples = {}, schema }) =>
    Object.entries(Schema.decodeUnknownSync(Examples)(examples)).flatMap(([name, { value }]) => {
      const fault = schemaFault(schema, value)
      return fault === null ? [] : [`${where} ${name}: ${fault}`]
    })
  )

describe("the OpenAPI document", () => {
  for (const { description, method, operationId, parameters, path, requestBody, responses, summary, tags } of operations) {
    each(`has examples of ${method} ${path} that match its schemas`, () => {
      assert.isAbove(summary.length, 5)
      assert.isAbove(description.length, 20, operationId)
      assert.lengthOf(tags, 1)
      const faults = [
        ...wrong("request", requestBody?.content),
        ...Object.entries(responses).flatMap(([status, { content }]) => wrong(status, content)),
        ...parameters.flatMap(({ example, name, schema }) =>
          example === undefined ? [] : [schemaFault(schema, example)].flatMap((fault) => fault ?? []).map((fault) => `${name}: ${fault}`)
        )
      ]
      assert.deepStrictEqual(faults, [])
      const api = path !== "/" && path !== "/openapi.json" && path !== "/docs"
      for (const [status, { content }] of Object.entries(responses)) {
        for (const media of Object.values(content ?? {})) if (api || status !== "200") assert.isNotEmpty(media.examples ?? {}, `${operationId} ${status}`)
      }
      if (requestBody !== undefined) for (const media of Object.values(requestBody.content)) assert.isNotEmpty(media.examples ?? {})
      for (const { name, schema, in: place } of parameters) if (place !== "path") assert.property(schema, "type", name)
      // Documentation pages fill their forms with examples. An example of a filter would hide records of the list.
      assert.deepStrictEqual(
        parameters.filter(({ example, in: place }) => place === "query" && example !== undefined),
        []
      )
    })
  }
})

layer(layerStage(), { excludeTestServices: true })("the documents", (it) => {
  for (const path of ["/", "/openapi.json", "/docs"]) {
    it.effect(`${path} can be cached and revalidated`, () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const { headers, status, text } = yield* call("GET", path)
        const etag = String(headers.etag)
        assert.strictEqual(status, 200)
        assert.strictEqual(headers["content-length"], String(Buffer.byteLength(text)))
        for (const header of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
          const again = yield* call("GET", path, { headers: { "if-none-match": header } })
          assert.deepStrictEqual([again.status, again.text, again.headers.etag], [304, "", etag], header)
        }
        for (const header of ['"other"', etag.slice(1, -1)])
          assert.strictEqual((yield* call("GET", path, { headers: { "if-none-match": header } })).status, 200)
      })
    )
  }

  it.effect("/openapi.json is the document that the tests check every response against", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const served = jsonOf(yield* call("GET", "/openapi.json"))
      assert.deepInclude(served, { openapi: "3.1.0", servers: [{ url: "/", description: "This installation." }] })
      assert.deepNestedInclude(served, { "info.version": "1.0.0" })
      const { info } = Schema.decodeUnknownSync(Schema.Struct({ info: Schema.Struct({ description: Schema.String }) }))(served)
      for (const path of Object.keys(requestVocabulary)) assert.include(info.description, `\`POST ${path}\``)
    })
  )

  it.effect("/ is an index as JSON, or as a page for browsers that loads and runs nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const index = Schema.decodeUnknownSync(Schema.Struct({ links: Schema.Record(Schema.String, Schema.String), inference: Schema.Array(Schema.String) }))(
        jsonOf(yield* call("GET", "/"))
      )
      assert.deepStrictEqual(index.inference, Object.keys(requestVocabulary))
      const { headers, status, text } = yield* call("GET", "/", { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } })
      assert.deepStrictEqual([status, headers["content-type"], headers.vary], [200, "text/html; charset=utf-8", "Accept"])
      assert.match(String(headers["content-security-policy"]), /^default-src 'none';/)
      assert.notMatch(text, /https?:|<(?:script|style|img|link)\b/)
      for (const path of Object.values(index.links)) {
        assert.include(text, `href="${path}"`)
        assert.notStrictEqual((yield* call("GET", path)).status, 404, path)
      }
    })
  )

  it.effect("/docs shows the document and loads nothing from other origins", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { headers, text } = yield* call("GET", "/docs")
      const scripts = [...text.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script = ""]) => script)
      const data = /<script id="swagger-spec" type="application\/json">\s*([\s\S]*?)\s*<\/script>/.exec(text)?.[1]
      const served = jsonOf(yield* call("GET", "/openapi.json"))
      assert.deepStrictEqual(Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))(data), served)

      // The markup makes the browser load nothing.
      const page = text.replace(/<script[\s\S]*?<\/script>/g, "<script></script>")
      assert.notMatch(page, /<(?:link|img|iframe|script|base|object|embed)\b[^>]*\b(?:src|href|data)\s*=/i)
      assert.notMatch(page, /@import|url\(\s*["']?(?:https?:)?\/\//i)
      // The policy also blocks requests of the scripts: no directive allows another host or external code.
      const policy = new Map(
        String(headers["content-security-policy"])
          .split("; ")
          .map((directive) => [directive.replace(/ .*/s, ""), directive.split(" ").slice(1)])
      )
      assert.deepStrictEqual(policy.get("default-src"), ["'none'"])
      assert.deepStrictEqual(
        policy.get("script-src"),
        scripts.map((script) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`)
      )
      assert.deepStrictEqual(policy.get("connect-src"), ["'self'"])
      assert.deepStrictEqual(policy.get("img-src"), ["data:"])
      assert.notMatch(String(headers["content-security-policy"]), /https?:|\*|unsafe-eval/)
    })
  )
})
