import type { Vitest } from "@effect/vitest"
import {
  Ids,
  initialImageProfile,
  type ModelCapabilities,
  modelCapabilities,
  nothingServed,
  RequestId,
  type RequestRecord,
  type ServedContract
} from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"

import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Allowances, ApiKeys, type Caller, Catalog, Database, Metering, Requests, Routes, Runs } from "@seatrial/store"

import { makeCaller, makeServing } from "@seatrial/store/testing"
import { ConfigProvider, Context, Effect, Fiber, Layer, Option, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Gateway } from "../../../packages/gateway/src/Gateway.ts"
import { Internet } from "../../../packages/gateway/src/images/Internet.ts"
import { listen } from "../../../packages/gateway/src/listen.ts"
import { answers, type Call, type FakeEngine, makeEngine, type Script, wholeAnswer } from "../../../packages/gateway/test/fakeEngine.ts"
import { startGateway } from "../../../packages/gateway/test/gatewayProcess.ts"
import { layerStore, Url } from "../../../packages/gateway/test/serving.ts"
import { fetched } from "../../../packages/gateway/test/stage.ts"
import { makeImageHost } from "./imageHost.ts"
import { useJavaScript } from "./javascriptClients.ts"
import { makePythonClients } from "./pythonClients.ts"
import { startReferenceEngine } from "./referenceEngine.ts"
import type { Seen, Use } from "./Use.ts"

/** A template that names all that a template can name. */
const template = "{% if tools %}<tool_call>{% endif %}{% if enable_thinking is defined %}<think>{% endif %}{{ reasoning_effort }}<|image_pad|>"

/** The contract of an engine that serves everything that there is a word for. */
const everything: ServedContract = {
  ...(engineFor("vllm")?.served ?? nothingServed),
  toolCalling: {
    tool_choice: { auto: true, required: true, named: true, none: true },
    parallel_calls: true,
    single_call: true,
    strict_arguments: true,
    tool_results: true
  },
  imageInput: initialImageProfile,
  reasoningControls: { thinking_toggle: true, effort_values: ["low", "high"], token_budget: true }
}
const commit = "c".repeat(40)
const able = modelCapabilities(everything, { chat_template: template, commit })

/** What models can do, by their slugs. */
const models: Readonly<Record<string, ModelCapabilities>> = {
  able,
  plain: modelCapabilities(everything, { chat_template: "{{ messages }}", commit }),
  "auto-only": { ...able, tool_calling: { ...able.tool_calling, tool_choice: { auto: true, required: false, named: false, none: true } } }
}

const decodeTemplate = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ chat_template: Schema.String })))

/** What the trained sample can do on the reference engine. */
const sample = Effect.sync(() => {
  const { chat_template } = decodeTemplate(Buffer.from(trainedFiles("tiny-chat").get("tokenizer_config.json") ?? []).toString("utf8"))
  return modelCapabilities(engineFor("reference")?.served ?? nothingServed, { chat_template, commit })
})

/** An organization with a key of all scopes and a key that may read models. */
const makeOrganization = Effect.fnUntraced(function* (slug: string) {
  const keys = yield* ApiKeys
  const { caller, secret, user } = yield* makeCaller(slug)
  const reader = yield* keys.create({ orgId: caller.orgId, userId: user.id, name: "reader", scopes: ["models:read"] })
  return { caller, orgId: caller.orgId, key: Redacted.value(secret), reader: Redacted.value(reader.secret) }
})

/** Serves a model that can do this from an engine. */
const serve = Effect.fnUntraced(function* (caller: Caller, slug: string, capabilities: ModelCapabilities, url: string) {
  const sql = yield* SqlClient.SqlClient
  const runs = yield* Runs
  const { operation, revisionId } = yield* makeServing(caller, slug, slug)
  yield* sql`UPDATE revisions SET capabilities = ${JSON.stringify(capabilities)}::jsonb WHERE org_id = ${caller.orgId} AND id = ${revisionId}`
  yield* runs.publishEndpoints(operation.id, caller.orgId, [{ url, pod: `pod-${slug}` }])
})

/** A model whose engine stops without requests, and takes about a second to start. */
const makeResting = Effect.fnUntraced(function* (caller: Caller, slug: string, url: string) {
  const sql = yield* SqlClient.SqlClient
  const runs = yield* Runs
  const { orgId } = caller
  const { operation, revisionId } = yield* makeServing(caller, slug, slug)
  yield* sql`UPDATE revisions SET capabilities = ${JSON.stringify(able)}::jsonb, settings = settings || '{"hold_seconds": 60}', measured = '{"load_seconds": 1}'
    WHERE org_id = ${orgId} AND id = ${revisionId}`
  yield* sql`DELETE FROM outbox WHERE org_id = ${orgId} AND deployment_id = ${operation.id}`
  const count = sql`SELECT 1 FROM outbox WHERE org_id = ${orgId} AND deployment_id = ${operation.id}`
  return {
    /** How often demand was reported to the operator. */
    wakeUps: Effect.orDie(Effect.map(count, (rows) => rows.length)),
    start: runs.publishEndpoints(operation.id, orgId, [{ url, pod: `pod-${slug}` }])
  }
})

/** The script, which notes what it is asked; what engines are asked of themselves is answered apart from it. */
const noting =
  (script: Script, calls: Array<Call>): Script =>
  (call) => {
    if (call.request.method === "GET") return void call.response.writeHead(200).end()
    calls.push(call)
    script(call)
  }

const make = Effect.gen(function* () {
  const requests = yield* Requests
  const python = yield* makePythonClients
  const engine: FakeEngine = yield* makeEngine(noting(answers(wholeAnswer("a")), []))
  // Another engine may already serve the sample model under that name.
  const there = process.env.SEATRIAL_REAL_ENGINE
  const started = there === undefined ? startReferenceEngine("acme/real") : Effect.succeed(there)
  const real = yield* Effect.forkScoped(started, { startImmediately: true })
  const { caller, key, orgId, reader } = yield* makeOrganization("acme")
  const other = yield* makeOrganization("other")
  for (const [slug, capabilities] of Object.entries(models)) {
    yield* serve(caller, slug, capabilities, engine.url)
    yield* serve(other.caller, slug, capabilities, engine.url)
  }
  const resting = { JavaScript: yield* makeResting(caller, "resting-javascript", engine.url), Python: yield* makeResting(caller, "resting-python", engine.url) }
  yield* serve(caller, "real", yield* sample, yield* Fiber.join(real))
  const env = { GATEWAY_ABANDONED_SECONDS: "0.1", GATEWAY_HEARTBEAT_SECONDS: "0.1", GATEWAY_FIRST_FRAME_SECONDS: "60", GATEWAY_SILENCE_SECONDS: "60" }
  // The second has limits that are reached at once.
  const [{ address }, strict] = yield* Effect.all([startGateway(env), startGateway({ ...env, GATEWAY_KEY_CONCURRENCY: "1", GATEWAY_WHOLE_SECONDS: "1" })], {
    concurrency: 2
  })

  const host = yield* makeImageHost
  const gazing = yield* startGazing(host.internet)

  const untilRouted = Effect.fnUntraced(function* (gateway: string, model: string) {
    const ask = fetched(gateway, { key, body: { model, prompt: "a", max_tokens: 1 }, path: "/v1/completions" })
    for (let seen = yield* ask; seen.status() !== 200; seen = yield* ask) yield* Effect.yieldNow
  })
  for (const gateway of [address, strict.address, gazing]) for (const slug of [...Object.keys(models), "real"]) yield* untilRouted(gateway, `acme/${slug}`)

  const record = (id: string | null) =>
    Effect.flatMap(Schema.decodeUnknownEffect(RequestId)(id), (known) => requests.find(orgId, known)).pipe(Effect.map(Option.getOrThrow), Effect.orDie)

  return {
    address,
    strict: strict.address,
    gazing,
    host,
    /** `acme/resting-` and the language. */
    resting,
    key,
    reader,
    otherKey: other.key,
    orgId,
    /** Has the engine do this from now on; gives the calls that it gets from now on. */
    play: (script: Script): ReadonlyArray<Call> => {
      const calls: Array<Call> = []
      engine.script = noting(script, calls)
      return calls
    },
    record,
    /** The record, when it has ended. */
    ended: Effect.fnUntraced(function* (id: string | null) {
      let found: RequestRecord = yield* record(id)
      while (found.state === "running") {
        yield* Effect.yieldNow
        found = yield* record(id)
      }
      return found
    }),
    receipt: (id: string | null) =>
      Effect.flatMap(Schema.decodeUnknownEffect(RequestId)(id), (known) => requests.findReceipt(orgId, known)).pipe(
        Effect.map(Option.getOrThrow),
        Effect.orDie
      ),
    records: Effect.map(requests.list(orgId, { limit: 100, after: null }), ({ items }) => items),
    python
  }
})

/** A gateway on Postgres within this process, with the test's image hosts. It holds requests for stopped models for a second. */
const startGazing = Effect.fnUntraced(function* (internet: Internet) {
  const settings = ConfigProvider.fromUnknown({ GATEWAY_IMAGE_SECONDS: 2, GATEWAY_IMAGE_CONNECT_SECONDS: 1, GATEWAY_COLD_SECONDS: 1 })
  const layer = Gateway.layer.pipe(
    Layer.provide([Allowances.layerSql, ApiKeys.layerSql, Catalog.layerSql, Metering.layerSql, Routes.layerSql]),
    Layer.provide([Database.layerUrl(yield* Url), Ids.layer]),
    Layer.provide(ConfigProvider.layer(settings)),
    Layer.provide(Layer.succeed(Internet, internet))
  )
  const { handler } = Context.get(yield* Layer.build(layer), Gateway)
  return `http://127.0.0.1:${yield* listen(handler, { host: "127.0.0.1", port: 0, grace: 0 })}`
})

/** A gateway's program on Postgres before an engine that does what a test says, and the real clients of two languages. */
export class Stage extends Context.Service<Stage, Effect.Success<typeof make>>()("seatrial/test/gateway/Stage") {
  static readonly layer = Layer.effect(Stage, make).pipe(Layer.provideMerge(layerStore))
}

export const languages = ["JavaScript", "Python"] as const

/** What makes a test of a promise that the stage is there for. */
export type Promises = Vitest.MethodsNonLive<Stage>

/** Uses the client of that language. */
export const asks = Effect.fnUntraced(function* (
  language: (typeof languages)[number],
  use: Partial<Use> & Pick<Use, "call">
): Effect.fn.Return<Seen, never, Stage> {
  const { address, key, python } = yield* Stage
  const whole: Use = { client: "openai", address, key, ...use }
  return yield* language === "Python" ? python.use(whole) : useJavaScript(whole)
})

/** The member of a JSON value at that path; undefined if there is none. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown => {
  let found = value
  for (const step of path) found = typeof found === "object" && found !== null ? Reflect.get(found, step) : undefined
  return found
}

/** What an engine was sent. */
export const bodyOf = (call: Call | undefined): unknown => JSON.parse(call?.body ?? "null")
