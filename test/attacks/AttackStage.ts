import { fileURLToPath } from "node:url"
import { Ids, type Prices } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, HubConnections, ModelAdmin, Organizations, Runs } from "@seatrial/store"
import { makeCaller, makeServing, makeTestDatabase } from "@seatrial/store/testing"
import { ConfigProvider, Effect, Layer, Redacted, Schema } from "effect"
import { inject } from "vitest"
import { HonestReport, type Measurement } from "./HonestReport.ts"
import { type Program, startProgram } from "./startProgram.ts"

/** The services of the store, for what an attack has to prepare or to verify in the database. */
const layerStore = (url: Redacted.Redacted<string>) =>
  Layer.mergeAll(ApiKeys.layerSql, Deployments.layerSql, Organizations.layerSql, ModelAdmin.layerSql, Runs.layerSql).pipe(
    Layer.provideMerge(HubConnections.layerSql),
    Layer.provideMerge(Ids.layer),
    Layer.provideMerge(Database.layerUrl(url)),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64") })))
  )
export type Store = Layer.Success<ReturnType<typeof layerStore>>

/** An organization with a key of all scopes. */
export interface Party {
  readonly orgId: string
  readonly keyId: string
  readonly secret: string
}

export interface AttackStage {
  readonly gateways: ReadonlyArray<{ readonly address: string } & Pick<Program, "hasEnded" | "kill" | "residentBytes">>
  /** The first gateway's. */
  readonly address: string
  readonly databaseUrl: Redacted.Redacted<string>
  readonly engineUrl: string
  /** The name of a public model at a price, which both parties call. */
  readonly model: string
  readonly attacker: Party
  readonly honest: Party
  /** How often the attacker got each answer: a status, or `closed` for none. `sendRequest` and `openConnection` count them. */
  readonly answers: Map<string, number>
  /** Measures the honest client for so long. */
  readonly measure: (millis: number) => Effect.Effect<HonestReport>
}

const prices: Prices = {
  input_micros_per_mtok: "1000000",
  output_micros_per_mtok: "1000000",
  cache_read_micros_per_mtok: "1000000",
  cache_write_micros_per_mtok: "1000000"
}

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const gatewayProgram = fileURLToPath(import.meta.resolve("@seatrial/gateway/main"))

const startGateway = Effect.fnUntraced(function* (url: Redacted.Redacted<string>, settings: Readonly<Record<string, string>>) {
  const program = yield* startProgram(gatewayProgram, {
    DATABASE_URL: Redacted.value(url),
    DATABASE_ROLE: "seatrial_gateway",
    GATEWAY_HOST: "127.0.0.1",
    GATEWAY_PORT: "0",
    GATEWAY_DRAIN_SECONDS: "0",
    // As the chart sets it.
    NODE_OPTIONS: "--max-semi-space-size=16 --max-old-space-size=1024",
    ...settings
  })
  let address: string | undefined
  while (address === undefined) address = /gateway listens on (127\.0\.0\.1:\d+)/.exec(yield* program.nextLine)?.[1]
  return { ...program, address: `http://${address}` }
})

const makeParty = Effect.fnUntraced(function* (slug: string) {
  const { caller, secret } = yield* makeCaller(slug)
  return { orgId: caller.orgId, keyId: caller.keyId, secret: Redacted.value(secret) } satisfies Party
})

/** A public model named `tiny` of a third organization, served by the engine. */
const publishModel = Effect.fnUntraced(function* (engineUrl: string) {
  const runs = yield* Runs
  const admin = yield* ModelAdmin
  const { caller } = yield* makeCaller("owner")
  const { modelId, operation } = yield* makeServing(caller, "k")
  yield* runs.publishEndpoints(operation.id, caller.orgId, [{ url: engineUrl, pod: "pod-0" }])
  yield* admin.publish(caller.orgId, modelId, prices)
})

const decodeReport = Schema.decodeUnknownSync(Schema.fromJsonString(HonestReport))

/** Requests of the honest client a second. */
const perSecond = 25

/** Gateways and an engine as separate processes with a separate database, and two organizations; `prepare` runs before the gateways start. */
export const openStage = Effect.fnUntraced(function* <E, R>(
  gatewayCount: number,
  settings: Readonly<Record<string, string>>,
  prepare: (parties: Pick<AttackStage, "attacker" | "honest" | "engineUrl">) => Effect.Effect<void, E, R>
) {
  const databaseUrl = yield* makeTestDatabase(inject("postgres"))
  const engine = yield* startProgram(pathOf("./programs/standInEngine.ts"))
  const engineUrl = (yield* engine.nextLine).replace("listens on ", "")
  const idle = yield* startProgram(pathOf("./programs/idleServer.ts"))
  const idleUrl = (yield* idle.nextLine).replace("listens on ", "")
  const store = yield* Layer.build(layerStore(databaseUrl))
  const { attacker, honest } = yield* Effect.gen(function* () {
    yield* publishModel(engineUrl)
    const parties = { attacker: yield* makeParty("attacker"), honest: yield* makeParty("honest") }
    yield* prepare({ ...parties, engineUrl })
    return parties
  }).pipe(Effect.provide(store))
  const gateways = yield* Effect.forEach(Array.from({ length: gatewayCount }), () => startGateway(databaseUrl, settings), { concurrency: "unbounded" })
  const client = yield* startProgram(pathOf("./programs/honestClient.ts"))
  yield* client.nextLine
  const measure = Effect.fnUntraced(function* (millis: number) {
    const measurement: Measurement = {
      addresses: gateways.map(({ address }) => address),
      idleUrl,
      secret: honest.secret,
      model: "tiny",
      millis,
      perSecond
    }
    client.write(JSON.stringify(measurement))
    return decodeReport(yield* client.nextLine)
  })
  const stage: AttackStage = {
    gateways,
    address: gateways[0]?.address ?? "",
    databaseUrl,
    engineUrl,
    model: "tiny",
    attacker,
    honest,
    answers: new Map(),
    measure
  }
  return { stage, store }
})
