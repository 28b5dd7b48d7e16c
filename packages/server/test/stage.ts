import { type IncomingHttpHeaders, request as send } from "node:http"
import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { type Commit, Ids, type RepositoryFacts, type Scope, scopes } from "@seatrial/domain"
import { Hub, type HubRefusal, type HubUnavailable } from "@seatrial/hub"
import {
  ApiKeys,
  AuditEvents,
  Billing,
  Catalog,
  Deployments,
  HostClasses,
  HubConnections,
  Metering,
  Organizations,
  OrgModels,
  OwnModels,
  Requests,
  Runs,
  Suspicions
} from "@seatrial/store"
import { layerTestDatabase } from "@seatrial/store/testing"
import { Cause, ConfigProvider, Context, Effect, Layer, Logger, Option, Redacted, Ref, References, Schema } from "effect"
import { HttpServer, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { inject } from "vitest"
import { tinyConfig } from "../../../test/models/modelConfigs.ts"
import { listening, makeApp, makeNodeServer, ServerSettings } from "../src/index.ts"
import { assertConforms } from "./conformance.ts"

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Call {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, unless it is text. */
  readonly body?: unknown
}

const parseJson = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))
export const jsonOf = (answer: Answer): unknown => parseJson(answer.text)

/** The responses of the test hub. */
export type HubAnswers = (
  source: { readonly repo: string; readonly ref?: string | undefined },
  token: Option.Option<string>
) => Effect.Effect<RepositoryFacts, HubRefusal | HubUnavailable>

/** A server on a free port with its own database, and what tests need to use them. */
export class Stage extends Context.Service<
  Stage,
  {
    readonly port: number
    readonly call: (method: string, path: string, call?: Call) => Effect.Effect<Answer>
    readonly hub: Ref.Ref<HubAnswers>
    /** The server's log: the text of each line with its annotations. */
    readonly logged: ReadonlyArray<string>
  }
>()("seatrial/test/Stage") {}

export const callPort =
  (port: number) =>
  (method: string, path: string, { body, headers = {}, key }: Call = {}) =>
    Effect.callback<Answer>((resume) => {
      const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body)
      const sent = send(
        {
          host: "127.0.0.1",
          port,
          method,
          path,
          agent: false,
          headers: {
            ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            ...(text === undefined ? {} : { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) }),
            ...headers
          }
        },
        (response) => {
          const chunks: Array<Buffer> = []
          response.on("data", (chunk: Buffer) => chunks.push(chunk))
          response.on("end", () => {
            const answer = { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString("utf8") }
            // Every response of every test must conform to the served document.
            resume(
              Effect.as(
                Effect.sync(() => assertConforms(method, path, answer)),
                answer
              )
            )
          })
        }
      )
      sent.on("error", (cause) => resume(Effect.die(cause)))
      sent.end(text)
    })

const settings = (over: Readonly<Record<string, string>>) =>
  ConfigProvider.layer(
    ConfigProvider.fromUnknown({
      SEATRIAL_CURSOR_KEY: "0123456789abcdef0123456789abcdef",
      SEATRIAL_SIGNING_KEYS: Buffer.alloc(32, 9).toString("base64"),
      SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
      SERVER_READS_PER_KEY_BURST: "1000000",
      SERVER_READS_PER_ORG_BURST: "1000000",
      SERVER_PREVIEWS_PER_ORG: "1000000",
      SERVER_WRITES_PER_ORG: "1000000",
      ...over
    })
  )

/** Dies if a response does not conform to the served document. This also covers tests with clients that check only the body. */
const checkConformance = Effect.fnUntraced(function* ({ body, headers, status }: HttpServerResponse.HttpServerResponse) {
  const { method, url } = yield* HttpServerRequest.HttpServerRequest
  const text = body._tag === "Uint8Array" && method !== "HEAD" ? new TextDecoder().decode(body.body) : ""
  assertConforms(method, url, { status, headers, text })
})

const noHub: HubAnswers = () => Effect.die(new Error("this test must not call the hub"))

const layerOwnDatabase = Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres"))))

/** The stage on a given database. `over`: settings by name. */
export const layerStageOn = <E>(layerDatabase: Layer.Layer<Layer.Success<typeof layerOwnDatabase>, E>, over: Readonly<Record<string, string>> = {}) => {
  const logged: Array<string> = []
  const collect = Logger.make(({ cause, fiber, message }) => {
    logged.push(`${String(message)} ${Cause.pretty(cause)} ${JSON.stringify(fiber.getRef(References.CurrentLogAnnotations))}`)
  })

  const layerStore = Layer.mergeAll(
    Organizations.layerSql,
    ApiKeys.layerSql,
    AuditEvents.layerSql,
    Suspicions.layerSql,
    Billing.layerSql,
    Catalog.layerSql,
    Deployments.layerSql,
    HostClasses.layerSql,
    HubConnections.layerSql,
    OrgModels.layerSql,
    OwnModels.layerSql,
    Requests.layerSql,
    Metering.layerSql,
    Runs.layerSql.pipe(Layer.provide(HubConnections.layerSql))
  ).pipe(Layer.provideMerge([layerDatabase, Ids.layer]))

  const layerServer = Layer.effect(
    Stage,
    Effect.gen(function* () {
      const hub = yield* Ref.make(noHub)
      const layerHub = Layer.succeed(
        Hub,
        Hub.of({
          inspect: (source, token) => Effect.flatMap(Ref.get(hub), (answer) => answer(source, Option.map(token, Redacted.value))),
          fetch: () => Effect.die(new Error("the server must not download")),
          readSmall: () => Effect.die(new Error("the server must not read tensors")),
          readTensors: () => Effect.die(new Error("the server must not read tensors"))
        })
      )
      const app = yield* makeApp.pipe(Effect.provide(layerHub))
      const server = yield* HttpServer.HttpServer
      yield* server.serve(Effect.tap(app, checkConformance))
      const { address } = server
      if (address._tag === "UnixPathAddress") return yield* Effect.die(new Error("no port"))
      return Stage.of({ port: address.port, call: callPort(address.port), hub, logged })
    })
  )

  return layerServer.pipe(
    Layer.provide(
      Layer.unwrap(Effect.map(listening, ({ clients }) => NodeHttpServer.layerServer(() => makeNodeServer(clients), { port: 0, host: "127.0.0.1" })))
    ),
    Layer.provideMerge(ServerSettings.layerConfig),
    Layer.provideMerge(layerStore),
    Layer.provideMerge([NodeHttpServer.layerHttpServices, NodeServices.layer]),
    Layer.provide(Logger.layer([collect])),
    Layer.provide(settings(over))
  )
}

/** The stage with its own database. `over`: settings by name. */
export const layerStage = (over: Readonly<Record<string, string>> = {}) => layerStageOn(layerOwnDatabase, over)

let tenantCount = 0

/** A new organization that has made its first purchase, with a key that has these scopes. */
export const makeTenant = Effect.fnUntraced(function* (keyScopes: ReadonlyArray<Scope> = scopes, purchase = true) {
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const slug = `tenant-${++tenantCount}`
  const { id: orgId } = yield* organizations.create({ slug, name: slug })
  const user = yield* organizations.addUser({ orgId, email: `owner@${slug}.example`, name: "Owner", role: "owner" })
  if (purchase) yield* organizations.recordPurchase({ orgId, micros: 1_000_000n })
  const withKey = (scopes: ReadonlyArray<Scope>, expiresAt?: number) =>
    Effect.map(keys.create({ orgId, userId: user.id, name: "test", scopes, ...(expiresAt === undefined ? {} : { expiresAt }) }), ({ key, secret }) => ({
      keyId: key.id,
      secret: Redacted.value(secret)
    }))
  const { keyId, secret } = yield* withKey(keyScopes)
  return { orgId, userId: user.id, slug, keyId, key: secret, withKey }
})

/** A new organization, with its key as the store authenticates it. */
export const makeCaller = Effect.fnUntraced(function* () {
  const tenant = yield* makeTenant()
  const caller = Option.getOrThrow(yield* (yield* ApiKeys).authenticate(Redacted.make(tenant.key)))
  return { ...tenant, caller }
})

const commit: Commit = Schema.decodeSync(Schema.String.pipe(Schema.brand("Commit")))("c0ffee0123456789c0ffee0123456789c0ffee01")

/** A repository that the reference engine can serve. */
export const tinyFacts: RepositoryFacts = {
  repo: "seatrial/tiny-chat",
  ref: "main",
  commit,
  license: "apache-2.0",
  gated: false,
  files: [],
  config: { ...tinyConfig, hidden_size: 64, head_dim: 16 },
  weights_bytes: 1_000_000,
  parameters: 500_000,
  chat_template: null
}
