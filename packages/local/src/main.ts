import { dirname, join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgClient } from "@effect/sql-pg"
import { Ids, layerTracing, startProblem } from "@seatrial/domain"
import { Gateway } from "@seatrial/gateway"
import { Hub } from "@seatrial/hub"
import { KubeClient, KubeConnection } from "@seatrial/kube"
import { Operator } from "@seatrial/operator"
import { ServerSettings } from "@seatrial/server"
import {
  Allowances,
  ApiKeys,
  AppliedResources,
  AuditEvents,
  Billing,
  Catalog,
  Database,
  Deployments,
  GpuHolds,
  HostClasses,
  HubConnections,
  Metering,
  Organizations,
  OrgModels,
  OwnModels,
  Requests,
  Routes,
  Runs,
  Suspicions
} from "@seatrial/store"
import { Cause, ConfigProvider, Console, Context, Effect, Layer, Option, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { LocalCluster } from "./cluster/LocalCluster.ts"
import { JobController } from "./node/JobController.ts"
import { NodeAgent } from "./node/NodeAgent.ts"
import { Scheduler } from "./node/Scheduler.ts"
import { EmbeddedPostgres } from "./postgres/EmbeddedPostgres.ts"
import { awaitHostClasses } from "./start/awaitHostClasses.ts"
import { bootstrap } from "./start/bootstrap.ts"
import { cpuVllm } from "./start/cpuVllm.ts"
import { localHostClasses, localNodes } from "./start/hostClasses.ts"
import { install } from "./start/install.ts"
import { layerLog } from "./start/layerLog.ts"
import { openFront } from "./start/openFront.ts"
import { openHub } from "./start/openHub.ts"
import { parentGone } from "./start/parentGone.ts"
import { podNetwork } from "./start/podNetwork.ts"
import { StartError } from "./start/StartError.ts"
import { type Ports, StateFolder } from "./start/StateFolder.ts"
import { defaultPorts, settings, startSettings } from "./start/settings.ts"

/** The content of the product's images in this checkout: its commands, and the Node that runs this process. */
const image = {
  path: [join(import.meta.dirname, "../../../node_modules/.bin"), dirname(process.execPath)],
  // Programs reuse the compile cache of this process.
  environment: process.env.NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }
}

/**
 * The images of other engines. The reference engine runs in their place, with their arguments and their format of
 * answers.
 */
const standIn = (name: string) => ({
  ...image,
  path: [join(import.meta.dirname, "../../../node_modules/@seatrial/reference-engine/bin", name), ...image.path]
})

const layerKube = (kubeconfig: string) => KubeClient.layer.pipe(Layer.provide(KubeConnection.layer({ kubeconfig })))

/**
 * Opens Postgres: the embedded one, or `DATABASE_URL`. The objects of the local cluster are always in the embedded one.
 */
const openDatabases = Effect.fnUntraced(function* (options: {
  readonly folder: string
  readonly durable: boolean
  readonly database: string
  readonly kubeconfig: string
}) {
  if (options.database !== "" && options.kubeconfig !== "") return { product: Redacted.make(options.database), cluster: null }
  const postgres = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory: options.folder, durable: options.durable })), EmbeddedPostgres)
  yield* Effect.all([postgres.createDatabase("seatrial"), postgres.createDatabase("cluster")])
  return { product: options.database === "" ? postgres.url("seatrial") : Redacted.make(options.database), cluster: postgres.url("cluster") }
})

/**
 * Starts the local cluster and its nodes unless `KUBECONFIG` is set. Returns the path of the kubeconfig and the port.
 */
const openCluster = Effect.fnUntraced(function* (
  kubeconfig: string,
  database: Redacted.Redacted<string> | null,
  port: number,
  vllmPath: Option.Option<string>
) {
  if (kubeconfig !== "" && Option.isSome(vllmPath))
    return yield* new StartError({ message: "--vllm is for the local cluster, and KUBECONFIG chooses another one. Unset KUBECONFIG, or leave out --vllm." })
  if (kubeconfig !== "" || database === null) {
    yield* Console.log(
      `Uses the cluster of KUBECONFIG (${kubeconfig}), not a local one: installs its custom resource definitions and the namespace seatrial there.`
    )
    yield* install([]).pipe(
      Effect.provide(layerKube(kubeconfig)),
      Effect.mapError(
        (error) =>
          new StartError({ message: `The cluster of KUBECONFIG (${kubeconfig}) cannot be used: ${error.message}. Unset KUBECONFIG for the local one.` })
      )
    )
    return { kubeconfig, port: undefined }
  }
  const folder = yield* StateFolder
  const open = (wanted: number) =>
    Layer.build(
      LocalCluster.layer({ port: wanted, token: folder.secrets.cluster_token }).pipe(Layer.provide(PgClient.layer({ url: database, maxConnections: 5 })))
    )
  const cluster = Context.get(yield* open(port).pipe(Effect.catch(() => open(0))), LocalCluster)
  const path = yield* folder.write("kubeconfig", cluster.kubeconfig)
  const kube = yield* Layer.build(layerKube(path))
  const vllm = Option.isSome(vllmPath) ? [yield* cpuVllm(vllmPath.value)] : []
  yield* Effect.provideContext(install([...localHostClasses, ...vllm.map(({ hostClass }) => hostClass)]), kube)
  const agent = NodeAgent.layer({
    directory: folder.path,
    nodes: [...localNodes, ...vllm.map(({ node }) => node)],
    images: {
      "ghcr.io/seatrial/seatrial": image,
      "ghcr.io/seatrial/reference-engine": image,
      "vllm/vllm-openai": standIn("vllm"),
      "lmsysorg/sglang": standIn("sglang"),
      ...vllm[0]?.images
    },
    network: yield* podNetwork(folder.path)
  })
  yield* Layer.build(Layer.mergeAll(Scheduler.layer, JobController.layer, agent).pipe(Layer.provide(Layer.succeedContext(kube))))
  return { kubeconfig: path, port: Number(new URL(cluster.address).port) }
})

const layerRecords = Layer.mergeAll(
  Allowances.layerSql,
  ApiKeys.layerSql,
  AppliedResources.layerSql,
  AuditEvents.layerSql,
  Suspicions.layerSql,
  Billing.layerSql,
  Catalog.layerSql,
  Deployments.layerSql,
  GpuHolds.layerSql,
  HostClasses.layerSql,
  HubConnections.layerSql,
  Metering.layerSql,
  Organizations.layerSql,
  OrgModels.layerSql,
  OwnModels.layerSql,
  Requests.layerSql,
  Routes.layerSql
)
const layerStore = Runs.layerSql.pipe(Layer.provideMerge(layerRecords), Layer.provideMerge([Database.layerMigrated, Ids.layer]))

interface Flags {
  readonly hubFolder: Option.Option<string>
  readonly vllm: Option.Option<string>
}

/** What the started system shows its user. */
interface StartedSystem {
  readonly address: string
  readonly folder: string
  readonly hub: string
  /** The models of the sample hub, the best one to try first; empty for another hub. */
  readonly models: ReadonlyArray<string>
  readonly kubeconfig: string
  readonly isLocalCluster: boolean
  readonly hasVllm: boolean
  /** Lines about host classes that are missing in a cluster. */
  readonly missing: ReadonlyArray<string>
}

const welcome = ({ address, folder, hasVllm, hub, isLocalCluster, kubeconfig, missing, models: [firstModel] }: StartedSystem): string =>
  [
    "Seatrial is ready.",
    "",
    `  API and gateway  ${address}`,
    `  documentation    ${address}/docs`,
    `  API key          ${folder}/local.json`,
    `  model hub        ${hub}${firstModel === undefined ? "" : " (sample hub)"}`,
    `  kubeconfig       ${kubeconfig}`,
    `  log              ${folder}/seatrial.log`,
    ...(isLocalCluster ? ["", "  The GPUs are simulated; the reference engine computes on this machine's CPU."] : []),
    ...(hasVllm ? ["  On the host class cpu-vllm, your vLLM does."] : []),
    "",
    ...missing.flatMap((line, index) => (index === 0 ? [line] : [line, ""])),
    "Try next, in another terminal:",
    firstModel === undefined ? "  npx seatrial preview owner/name" : `  npx seatrial deploy ${firstModel} --wait`,
    `  kubectl --kubeconfig ${kubeconfig} get mdep -A`,
    "",
    "Ctrl-C stops it; npm start continues with the same data."
  ].join("\n")

const start = Effect.fnUntraced(function* ({ hubFolder, vllm }: Flags) {
  const options = yield* settings
  const folder = yield* StateFolder
  const databases = yield* openDatabases(options)
  const databaseUrl = Redacted.value(databases.product)
  /** The port from the environment, otherwise of the previous start, otherwise the default. */
  const portOf = (name: keyof Ports) => Option.getOrElse(options.ports[name], () => folder.ports[name] ?? defaultPorts[name])
  const { address: hub, models } = yield* openHub({ endpoint: options.hub, folder: hubFolder, port: portOf("hub") })
  const isLocalCluster = options.kubeconfig === ""
  const { kubeconfig, port: clusterPort } = yield* openCluster(options.kubeconfig, databases.cluster, portOf("cluster"), vllm)

  const layerConfig = ConfigProvider.layerAdd(
    ConfigProvider.fromUnknown({
      DATABASE_URL: databaseUrl,
      HF_ENDPOINT: hub,
      KUBECONFIG: kubeconfig,
      OPERATOR_ORGANIZATION: "local",
      SEATRIAL_ENCRYPTION_KEY: folder.secrets.encryption_key,
      SEATRIAL_CURSOR_KEY: folder.secrets.cursor_key,
      SEATRIAL_SIGNING_KEYS: folder.secrets.signing_key
    }),
    { asPrimary: true }
  )
  const services = Layer.mergeAll(layerStore, Hub.layer, ServerSettings.layerConfig, layerKube(kubeconfig))
  const gateway = options.programs.gateway ? Gateway.layer : Layer.succeed(Gateway, Gateway.of({ handler: () => {} }))
  const operator = options.programs.operator ? Operator.layer : Layer.empty
  const context = yield* Layer.build(Layer.provideMerge(Layer.mergeAll(gateway, operator), services).pipe(Layer.provide(layerConfig)))

  yield* Effect.gen(function* () {
    const apiKey = yield* bootstrap()
    const port = yield* openFront(portOf("front"), options.programs)
    const clusterPorts = clusterPort === undefined ? {} : { cluster: clusterPort }
    yield* folder.keepPorts({ front: port, ...clusterPorts, ...(models.length > 0 ? { hub: Number(new URL(hub).port) } : {}) })
    const missing = options.programs.operator ? yield* awaitHostClasses({ local: isLocalCluster, kubeconfig }) : []
    const address = `http://127.0.0.1:${port}`
    const pid = String(process.pid)
    yield* folder.publish({ address, api_key: apiKey, kubeconfig, pid, hub, database_url: databaseUrl, encryption_key: folder.secrets.encryption_key })
    yield* Console.log(welcome({ address, folder: folder.path, hub, models, kubeconfig, isLocalCluster, missing, hasVllm: Option.isSome(vllm) }))
    yield* parentGone
  }).pipe(Effect.provideContext(context))
}, Effect.scoped)

/** The error as one sentence. The log has the details. */
const explain = (cause: Cause.Cause<{ readonly message: string }>) => {
  const problem = startProblem(cause, process.env.DATABASE_URL, "Set it in the environment; `npm start -- --help` lists the settings.")
  if (problem !== undefined) return Console.error(`Seatrial cannot start: ${problem.message}`)
  return Option.match(Cause.findErrorOption(cause), {
    onNone: () => Console.error("Seatrial stopped because of an internal error: see seatrial.log in its state folder."),
    onSome: (error) => Console.error(`Seatrial cannot start: ${error.message}`)
  })
}

const run = Effect.fnUntraced(
  function* (flags: Flags) {
    const { folder } = yield* settings
    const logged = start(flags).pipe(
      Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("Seatrial ended", Cause.pretty(cause)))),
      Effect.provide(layerTracing("seatrial")),
      Effect.provide(layerLog(folder))
    )
    yield* logged.pipe(Effect.provide(StateFolder.layer(folder)))
  },
  Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : explain(cause)))
)

const hubFolderFlag = Flag.String("hub-folder").pipe(
  Flag.withDescription("Folder with models as owner/name, which the sample hub serves in addition to its samples"),
  Flag.optional
)

const vllmFlag = Flag.String("vllm").pipe(
  Flag.withDescription("The command `vllm` of a Python environment, built for processors. It runs on the host class cpu-vllm"),
  Flag.optional
)

const listed = startSettings
  .map((entry) => `  ${entry.name}: ${entry.description}${entry.default === undefined ? "" : ` (default ${entry.default})`}`)
  .join("\n")

const main = Command.make("npm start", { hubFolder: hubFolderFlag, vllm: vllmFlag }, run).pipe(
  Command.withDescription(`Runs all of Seatrial on this machine until Ctrl-C.\n\nSettings, from the environment:\n${listed}`),
  Command.run({ version: "0.1.0" }),
  Effect.provide([NodeHttpServer.layerHttpServices, NodeServices.layer])
)

NodeRuntime.runMain(main, { disableErrorReporting: true })
