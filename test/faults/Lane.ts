import { randomBytes } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Ids, ModelId, OrgId, scopes } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { KubeClient, KubeConnection } from "@seatrial/kube"
import { JobController, LocalCluster, Scheduler } from "@seatrial/local"
import { control, HostClassResource } from "@seatrial/operator"
import {
  ApiKeys,
  AppliedResources,
  Database,
  Decisions,
  GpuHolds,
  HostClasses,
  HubConnections,
  ModelAdmin,
  Organizations,
  Runs,
  Sentinels,
  UnsentAlarms
} from "@seatrial/store"
import { Cause, ConfigProvider, Context, Effect, Layer, Logger, Redacted, Schedule, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { simulatedHostClass } from "../cluster/simulatedHostClass.ts"
import { makeCaller } from "../e2e/Caller.ts"
import { openCluster } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { makeStateFolder, startSystem } from "../e2e/LocalSystem.ts"
import { openDatabaseLine } from "./DatabaseLine.ts"
import { makeDeaths } from "./Deaths.ts"
import { makeFaultyServer } from "./FaultyServer.ts"
import { makeKubelet } from "./Kubelet.ts"
import { selectIn } from "./select.ts"
import { standInTrial } from "./standInTrial.ts"

export const namespace = "seatrial"

const database = Effect.fnUntraced(function* (prefix: string) {
  const name = `${prefix}_${randomBytes(6).toString("hex")}`
  const run = (statement: string) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(statement)
    }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(`${inject("postgres")}/postgres`), maxConnections: 1 })), Effect.orDie)
  yield* Effect.acquireRelease(run(`CREATE DATABASE ${name}`), () => run(`DROP DATABASE ${name} WITH (FORCE)`))
  return `${inject("postgres")}/${name}`
})

const layerStore = Layer.mergeAll(
  Runs.layerSql,
  AppliedResources.layerSql,
  HostClasses.layerSql,
  GpuHolds.layerSql,
  Decisions.layerSql,
  Sentinels.layerSql,
  UnsentAlarms.layerSql
).pipe(Layer.provideMerge(HubConnections.layerSql), Layer.provideMerge([Database.layerOperator, Ids.layer]))

const Table = Schema.Struct({ name: Schema.String })
/** The prompt of callers, and the answer of engines. */
const spoken = ["What does a sea trial show", "hands on deck"] as const

/** A key of another, uninvolved organization. */
const strangersKey = Effect.gen(function* () {
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const { id: orgId } = yield* Effect.orDie(organizations.create({ slug: "strangers", name: "Strangers" }))
  const { id: userId } = yield* organizations.addUser({ orgId, email: "owner@strangers.example", name: "Owner", role: "owner" })
  return Redacted.value((yield* keys.create({ orgId, userId, name: "key", scopes })).secret)
})

/**
 * A complete system: server and gateway in one process, the local cluster with its scheduler and controllers, stand-ins for
 * kubelets and engines, and an operator behind a faulty API server and an interruptible connection to Postgres. The
 * operator is started again whenever it dies.
 */
export const openLane = Effect.suspend(() => openLaneWith({ operates: true }))

/** The system without an operator. `state` has the addresses that an operator needs. */
export const openLaneWith = Effect.fnUntraced(function* ({ operates }: { readonly operates: boolean }) {
  const folder = yield* makeStateFolder
  const product = yield* database("faults")
  const objects = yield* database("faults_cluster")
  const faults = makeFaultyServer()
  const cluster = yield* LocalCluster.make({ port: 0, through: faults.through }).pipe(
    Effect.provide(yield* Layer.build(PgClient.layer({ url: Redacted.make(objects), maxConnections: 4 })))
  )
  const write = (name: string, text: string) =>
    Effect.promise(async () => {
      await writeFile(join(folder, name), text, { mode: 0o600 })
      return join(folder, name)
    })
  const othersConfig = yield* write("others.kubeconfig", cluster.kubeconfig)
  const its = yield* write("operator.kubeconfig", cluster.kubeconfig.replace(`/token/${cluster.token}`, ""))
  const kube = yield* openCluster(othersConfig)
  const settings = { SEATRIAL_DURABLE: "false", SEATRIAL_PROGRAMS: "server,gateway", KUBECONFIG: othersConfig, DATABASE_URL: product }
  const { program, state } = yield* startSystem(folder, settings)
  yield* kube.apply(HostClassResource, simulatedHostClass("sim-small", { bootDeadlineSeconds: 60 }))
  yield* Layer.build(Layer.mergeAll(Scheduler.layer, JobController.layer).pipe(Layer.provide(Layer.succeed(KubeClient, kube))))
  const kubelet = yield* makeKubelet(kube, namespace)
  const line = yield* openDatabaseLine(product)
  const layerAdmin = Layer.mergeAll(ModelAdmin.layerSql, Organizations.layerSql, ApiKeys.layerSql)
  const sql = yield* Layer.build(layerAdmin.pipe(Layer.provideMerge([PgClient.layer({ url: Redacted.make(product), maxConnections: 1 }), Ids.layer])))
  const select = selectIn(sql)

  const deaths = makeDeaths()
  /** When each engine was verified, by its address: Unix milliseconds. */
  const verified = new Map<string, number>()
  let comparisonMillis = 10
  const trial = standInTrial({
    verified: (url) => void verified.set(url, verified.get(url) ?? Date.now()),
    comparison: Effect.suspend(() => Effect.sleep(comparisonMillis))
  })
  const layerConfig = ConfigProvider.layer(
    ConfigProvider.fromUnknown({
      DATABASE_URL: line.url,
      DATABASE_ROLE: "seatrial_operator",
      SEATRIAL_ENCRYPTION_KEY: state.encryption_key,
      HF_ENDPOINT: state.hub,
      DATABASE_POOL_SIZE: "4"
    })
  )
  const layerKube = KubeClient.layerWith({ relistEvery: "1 second", backoff: "50 millis", maxBackoff: "500 millis", requestTimeout: "5 seconds" }).pipe(
    Layer.provide(KubeConnection.layer({ kubeconfig: its }))
  )
  const services = Layer.mergeAll(deaths.layer.pipe(Layer.provideMerge(layerStore)), Hub.layer, layerKube, FetchHttpClient.layer).pipe(
    Layer.provide(layerConfig)
  )
  const Organization = Schema.Tuple([Schema.Struct({ id: OrgId, slug: Schema.String })])
  const [{ id: orgId, slug }] = yield* select(Organization, "SELECT id, slug FROM organizations ORDER BY created_at LIMIT 1")
  const operatorSettings = {
    namespace,
    organization: slug,
    organizations: new Map<string, string>(),
    requireFirstPurchase: true,
    failedCapability: "withdraw" as const,
    leaseSeconds: 15,
    countAllPods: false,
    concurrency: 8,
    fetchImage: "ghcr.io/seatrial/seatrial:0.1.0",
    pullSecrets: [],
    fetchSeconds: 60,
    keepFinishedDays: 30,
    keepDecisionDays: 14,
    unpaidGraceSeconds: 3_600,
    sentinelSeconds: 60,
    sentinelShare: 0.005,
    sentinelAlpha: 1e-6,
    webhook: null,
    referenceLimits: { inAll: 4, perOrganization: 2 },
    caConfigMap: null,
    downloadEnvironment: [],
    weightsClaim: "seatrial-weights",
    hubEndpoint: state.hub
  }
  const secrets = [...spoken, state.api_key, state.encryption_key]
  const leaks: Array<string> = []
  const operatorLines: Array<string> = []
  const say = (line: string) => {
    if (secrets.some((secret) => line.includes(secret))) leaks.push(line)
    operatorLines.push(`${new Date().toISOString().slice(11, 23)} ${line}`.slice(0, 400))
    if (operatorLines.length > 60) operatorLines.shift()
  }
  const logger = Logger.make(({ logLevel, message }) => say(`${logLevel} ${Array.isArray(message) ? message.map(String).join(" ") : String(message)}`))
  const alive = Effect.provide(Effect.scoped(control(operatorSettings, trial)), services).pipe(
    Effect.sandbox,
    Effect.tapError((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning("the operator starts again", Cause.pretty(cause)))),
    Effect.retry(Schedule.spaced("200 millis")),
    Effect.ignore,
    Effect.provide(Logger.layer([logger]))
  )
  let lives = 0
  /** The longest time from the death of an operator until it had ended completely, when the next one begins. */
  let longestEndMillis = 0
  yield* Effect.gen(function* () {
    while (operates) {
      lives++
      const diedAt = yield* Effect.raceFirst(
        Effect.andThen(
          deaths.died,
          Effect.sync(() => performance.now())
        ),
        Effect.andThen(
          alive,
          Effect.sync(() => performance.now())
        )
      )
      longestEndMillis = Math.max(longestEndMillis, performance.now() - diedAt)
      say(`the operator died ${deaths.report().killed.at(-1) ?? ""}`)
      deaths.revive()
    }
  }).pipe(Effect.forkScoped)
  faults.setMaker(deaths.make)

  const caller = makeCaller(state.address, state.api_key)
  const stranger = makeCaller(state.address, yield* Effect.provideContext(strangersKey, sql))
  const ready = eventually("the operator has reported its host class", caller.call("POST", "/v1/deployment-previews", { source }), ({ text }) =>
    text.includes("derived")
  )
  if (operates) yield* ready
  return {
    /** Ends when an operator runs. */
    ready,
    folder,
    state,
    slug,
    cluster,
    product,
    caller,
    /** A caller of another organization. */
    stranger,
    faults,
    kube,
    kubelet,
    line,
    lives: () => lives,
    /** Takes a line of the operator's log. */
    say,
    /** The operator's last log lines. */
    operatorLines: () => operatorLines.join("\n"),
    /** A failure with the operator's last log lines before the reason, because only the end of a long output may be visible. */
    failure: (name: string, cause: Cause.Cause<unknown>) =>
      [
        `${name}, ${lives} lives of the operator, the longest end took ${Math.round(longestEndMillis)} ms`,
        ...operatorLines.slice(-3).map((line) => line.split("\n")[0]),
        Cause.pretty(cause)
      ].join("\n"),
    deaths,
    verified: Effect.sync(() => verified),
    /** How long the comparison of an engine's start takes from now on. */
    setComparison: (millis: number) => {
      comparisonMillis = millis
    },
    /** Runs a command of administration. */
    removeModel: (id: string) => Effect.orDie(Context.get(sql, ModelAdmin).remove(orgId, Schema.decodeUnknownSync(ModelId)(id))),
    /** Log lines and tables of Postgres that contain prompts or secrets. */
    leaks: Effect.gen(function* () {
      const tables = yield* select(Schema.Array(Table), "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'")
      const stored: Array<string> = []
      for (const { name } of tables) {
        const holds = secrets.map((secret) => `row::text LIKE '%${secret}%'`).join(" OR ")
        const rows = yield* select(Schema.Array(Schema.Unknown), `SELECT 1 FROM ${name} AS row WHERE ${holds} LIMIT 1`)
        if (rows.length > 0) stored.push(`the table ${name}`)
      }
      return [
        ...stored,
        ...leaks,
        ...program
          .output()
          .split("\n")
          .filter((line) => secrets.some((secret) => line.includes(secret)))
      ]
    }),
    /** The rows of a statement. */
    select,
    /** Deletes the records of stored weights, so that the next run has a download, which finds them. */
    forgetWeights: Effect.asVoid(select(Schema.Array(Schema.Unknown), "DELETE FROM stored_weights")),
    /** All runs so far. */
    runs: Effect.map(select(Schema.Array(Schema.Struct({ id: Schema.String })), "SELECT id FROM deployments"), (rows) => rows.map(({ id }) => id)),
    /** How many engines of a run the gateways know. */
    enginesOf: (run: string) =>
      Effect.map(
        select(Schema.Array(Schema.Struct({ deployment_id: Schema.String })), "SELECT deployment_id FROM endpoints WHERE reachable_at IS NOT NULL"),
        (rows) => rows.filter(({ deployment_id }) => deployment_id === run).length
      ),
    /** Runs whose engines the gateways know. */
    published: Effect.map(
      select(Schema.Array(Schema.Struct({ deployment_id: Schema.String })), "SELECT DISTINCT deployment_id FROM endpoints ORDER BY 1"),
      (rows) => rows.map((row) => row.deployment_id)
    )
  }
})
export type Lane = Effect.Success<ReturnType<typeof openLaneWith>>

export const source = { kind: "model_hub", repo: "seatrial/tiny-chat" } as const
