import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { leastContext, requestVocabulary, scopes } from "@seatrial/domain"
import { Context, Schema } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import { Api, RequiredScopes } from "../src/index.ts"

const Parameter = Schema.Struct({
  name: Schema.String,
  description: Schema.optionalKey(Schema.String),
  in: Schema.String,
  required: Schema.Boolean,
  schema: Schema.Record(Schema.String, Schema.Json)
})
const Operation = Schema.Struct({
  operationId: Schema.String,
  parameters: Schema.Array(Parameter),
  security: Schema.Array(Schema.Record(Schema.String, Schema.Array(Schema.String))),
  requestBody: Schema.optionalKey(Schema.Struct({ required: Schema.Boolean, content: Schema.Json })),
  responses: Schema.Record(Schema.String, Schema.Struct({ headers: Schema.Record(Schema.String, Schema.Json) }))
})
const Document = Schema.Struct({
  openapi: Schema.String,
  info: Schema.Struct({ version: Schema.String, description: Schema.String }),
  paths: Schema.Record(Schema.String, Schema.Record(Schema.String, Operation)),
  components: Schema.Struct({ schemas: Schema.Record(Schema.String, Schema.Json), securitySchemes: Schema.Json })
})
const raw = OpenApi.fromApi(Api)
const document = Schema.decodeUnknownSync(Document)(raw)
const operations = Object.entries(document.paths).flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => ({ path, method, ...operation })))
const find = (method: string, path: string) => {
  const operation = operations.find((candidate) => candidate.method === method && candidate.path === path)
  assert.isDefined(operation, `${method} ${path}`)
  return operation
}

describe("the OpenAPI document", () => {
  it("is an OpenAPI 3.1 document of version 1.0.0", () => {
    assert.match(document.openapi, /^3\.1\./)
    assert.strictEqual(document.info.version, "1.0.0")
  })

  const list = ["cursor", "limit", "model_id", "status"]
  const requests = ["api_key_id", "cursor", "from", "limit", "model_id", "status", "to"]
  const reads = ["200", "400", "401", "403", "404", "405", "408", "429", "431", "500", "503"]
  const receipts = [...reads, "406"].sort()
  const lists = ["200", "400", "401", "403", "405", "408", "429", "431", "500", "503"]
  const writes = [...lists, "413", "415"].sort()
  const changes = [...writes.filter((status) => status !== "200"), "204", "404", "409"].sort()
  const published = ["200", "304", "400", "405", "408", "431", "500", "503"]
  const models = ["cursor", "limit", "q", "status", "visibility"]
  const events = ["actor_user_id", "cursor", "from", "limit", "resource_type", "to"]
  const contract: ReadonlyArray<
    readonly [method: string, path: string, operationId: string, query: ReadonlyArray<string>, statuses: ReadonlyArray<string>, scopes: ReadonlyArray<string>]
  > = [
    ["get", "/v1/org/requests", "listRequests", requests, reads, ["requests:read"]],
    ["get", "/v1/org/requests/{request_id}", "getRequest", [], reads, ["requests:read"]],
    ["get", "/v1/org/receipts/{request_id}", "getReceipt", [], receipts, ["requests:read", "inference:write"]],
    ["get", "/v1/org/models", "listOrgModels", models, reads, ["models:read"]],
    ["get", "/v1/org/models/{id}", "getOrgModel", [], reads, ["models:read"]],
    ["get", "/v1/org/deployments", "listDeployments", list, reads, ["deployments:read"]],
    ["get", "/v1/org/deployments/{id}", "getDeployment", [], reads, ["deployments:read"]],
    ["get", "/v1/org/suspicions", "listSuspicions", ["cursor", "limit"], reads, ["deployments:read"]],
    ["get", "/v1/org/suspicions/{id}/requests", "listSuspicionRequests", ["cursor", "limit"], reads, ["requests:read"]],
    ["get", "/v1/org/audit-events", "listAuditEvents", events, reads, ["audit:read"]],
    ["get", "/v1/org/audit-events/{id}", "getAuditEvent", [], reads, ["audit:read"]],
    ["get", "/v1/requests", "requests.list", requests, lists, ["requests:read"]],
    ["get", "/v1/requests/{request_id}", "requests.get", [], reads, ["requests:read"]],
    ["get", "/v1/receipts/{request_id}", "requests.receipt", [], receipts, ["requests:read", "inference:write"]],
    ["get", "/v1/deployments", "deployments.list", list, lists, ["deployments:read"]],
    ["get", "/v1/deployments/{id}", "deployments.get", [], reads, ["deployments:read"]],
    ["get", "/v1/deployments/{id}/events", "deployments.events", [], reads, ["deployments:read"]],
    ["get", "/v1/deployments/{id}/progress", "deployments.progress", [], reads, ["deployments:read"]],
    ["post", "/v1/deployment-previews", "deployments.preview", [], writes, ["deployments:write"]],
    ["post", "/v1/deployments", "deployments.create", [], [...writes, "201", "402", "404", "409", "422"].sort(), ["deployments:write"]],
    ["post", "/v1/deployments/{id}/cancel", "deployments.cancel", [], [...writes, "404", "409"].sort(), ["deployments:write"]],
    ["get", "/v1/models", "models.list", [], lists, ["models:read", "inference:write"]],
    ["post", "/v1/models/{id}/disable", "models.disable", [], changes, ["models:write"]],
    ["post", "/v1/models/{id}/enable", "models.enable", [], ["402", ...changes].sort(), ["models:write"]],
    ["get", "/v1/models/{id}/scaling", "models.getScaling", [], reads, ["models:read"]],
    ["get", "/v1/models/{id}/load", "models.getLoad", [], reads, ["models:read"]],
    ["put", "/v1/models/{id}/scaling", "models.setScaling", [], [...writes, "404", "409"].sort(), ["models:write"]],
    ["delete", "/v1/models/{id}", "models.delete", [], changes.filter((status) => status !== "413" && status !== "415"), ["models:write"]],
    ["get", "/v1/spending", "spending.get", [], lists, ["requests:read"]],
    ["get", "/v1/catalog/models", "catalog.list", [], published, []],
    ["get", "/healthz", "system.health", [], ["200", "400", "405", "408", "431", "500"], []],
    ["get", "/readyz", "system.readiness", [], ["200", "400", "405", "408", "431", "500", "503"], []],
    ["get", "/.well-known/jwks.json", "system.signingKeys", [], ["200", "304", "400", "405", "408", "431", "500"], []],
    ["get", "/", "system.index", [], ["200", "304", "400", "405", "408", "431", "500"], []],
    ["get", "/openapi.json", "system.document", [], ["200", "304", "400", "405", "408", "431", "500"], []],
    ["get", "/docs", "system.docs", [], ["200", "304", "400", "405", "408", "431", "500"], []]
  ]
  it("describes exactly these operations", () => {
    assert.deepStrictEqual(operations.map(({ method, path }) => `${method} ${path}`).sort(), contract.map(([method, path]) => `${method} ${path}`).sort())
  })

  for (const [method, path, operationId, query, statuses, anyOf] of contract) {
    it(`describes ${method.toUpperCase()} ${path} with its parameters, responses and scopes`, () => {
      const operation = find(method, path)
      assert.strictEqual(operation.operationId, operationId)
      assert.deepStrictEqual(
        operation.parameters
          .filter((parameter) => parameter.in === "query")
          .map(({ name }) => name)
          .sort(),
        query
      )
      assert.deepStrictEqual(Object.keys(operation.responses).sort(), statuses)
      assert.deepStrictEqual(
        operation.security,
        anyOf.map((scope) => ({ bearer: [scope] }))
      )
    })
  }

  it("names, with the inference paths, the samples of an Ingress and an HTTPRoute that publish them, which exist and have each path", () => {
    const { description } = document.info
    const samples = [...description.matchAll(/`(k8s\/samples\/[a-z]+\.yaml)`/g)].map(([, file = ""]) => file)
    assert.deepStrictEqual(samples, ["k8s/samples/ingress.yaml", "k8s/samples/httproute.yaml"])
    for (const sample of samples) {
      const text = readFileSync(new URL(`../../../${sample}`, import.meta.url), "utf8")
      for (const path of Object.keys(requestVocabulary)) assert.include(text, path, sample)
    }
  })

  it("says that `q` alone may be empty", () => {
    assert.include(document.info.description, "empty parameters (except an empty `q`, which is no filter) return 400")
  })

  it("describes every parameter", () => {
    for (const { parameters, path } of operations)
      for (const { description, name } of parameters) assert.isAbove(description?.length ?? 0, 5, `${path} ${name}`)
  })

  it("describes integer parameters as integers", () => {
    for (const operation of operations) {
      for (const parameter of operation.parameters) {
        if (["limit", "from", "to"].includes(parameter.name)) assert.strictEqual(parameter.schema.type, "integer", `${operation.path} ${parameter.name}`)
      }
    }
    const limit = find("get", "/v1/requests").parameters.find(({ name }) => name === "limit")
    assert.deepInclude(limit?.schema, { minimum: 1, maximum: 200, default: 50 })
    assert.nestedPropertyVal(document.components.schemas, "ServingRequest.properties.max_context.minimum", leastContext)
  })

  it("describes x-request-id on every response, and Retry-After, Location and the other headers on the responses that have them", () => {
    for (const { method, path, responses } of operations) {
      for (const [status, { headers }] of Object.entries(responses)) {
        assert.property(headers, "x-request-id", `${method} ${path} ${status}`)
        if (status === "405") assert.property(headers, "allow")
        if (status === "304") assert.containsAllKeys(headers, ["etag", "cache-control"])
        if (status === "429" || status === "503") assert.property(headers, "retry-after")
        if (status === "401") assert.property(headers, "www-authenticate")
      }
    }
    const { responses } = find("post", "/v1/deployments")
    assert.containsAllKeys(responses["201"]?.headers, ["location"])
    assert.containsAllKeys(responses["200"]?.headers, ["location", "idempotent-replayed"])
  })

  it("states which bodies are optional", () => {
    assert.isTrue(find("post", "/v1/deployments").requestBody?.required)
    assert.isTrue(find("post", "/v1/deployment-previews").requestBody?.required)
    assert.isFalse(find("post", "/v1/deployments/{id}/cancel").requestBody?.required)
  })

  it("contains no internal schema names and no dangling references", () => {
    const names = Object.keys(document.components.schemas)
    assert.deepStrictEqual(
      names.filter((name) => /Encoded|_\d+$|^_/.test(name)),
      []
    )
    for (const [, name] of JSON.stringify(raw).matchAll(/#\/components\/schemas\/([^"]+)/g)) assert.include(names, name)
  })

  it("closes every object, so that no undescribed member is returned", () => {
    const open: Array<string> = []
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return
      if ("properties" in value && "type" in value && value.type === "object" && (!("additionalProperties" in value) || value.additionalProperties !== false))
        open.push(path)
      for (const [name, member] of Object.entries(value)) walk(member, `${path}/${name}`)
    }
    walk(document.components.schemas, "")
    assert.deepStrictEqual(open, [])
  })
})

describe("the contract", () => {
  it("requires an existing scope for every operation under /v1", () => {
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => {
        const anyOf = Context.get(endpoint.annotations, RequiredScopes)
        assert.strictEqual(endpoint.path.startsWith("/v1/") && endpoint.path !== "/v1/catalog/models", anyOf.length > 0, endpoint.path)
        for (const required of anyOf.flat()) assert.include(scopes, required)
      }
    })
  })
})
