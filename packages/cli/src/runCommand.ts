// The modules are imported directly, because the index of the package takes 0.3 s to load.
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Ids } from "@seatrial/domain"
import { ConfigProvider, Effect, Layer, Logger, Option } from "effect"
import { Command } from "effect/cli"
import type { SqlClient } from "effect/sql"
import { storeFailure } from "./admin/storeFailure.ts"
import { layerApi, layerPublicApi } from "./apiAccess.ts"
import { auditCommand } from "./audit.ts"
import { chatCommand } from "./chat.ts"
import { deployCommand, previewCommand } from "./deploy.ts"
import { cancelCommand, deploymentsCommand, statusCommand } from "./deployments.ts"
import { lazily } from "./lazily.ts"
import { readLocalState } from "./localState.ts"
import { loginCommand, logoutCommand, profilesCommand } from "./login.ts"
import { logsCommand } from "./logs.ts"
import { catalogCommand, makeModelsCommand } from "./models.ts"
import { openCommand } from "./open.ts"
import { gatewayCommand, operatorCommand, serverCommand } from "./programs.ts"
import { makeReceiptsCommand } from "./receipts.ts"
import { reportDefect } from "./reportDefect.ts"
import { requestsCommand } from "./requests.ts"
import { scaleCommand, topCommand } from "./scale.ts"
import { spendingCommand } from "./spending.ts"
import { suspicionsCommand } from "./suspicions.ts"
import { layerPresenter, UsageError } from "./UsageError.ts"

/** Settings that the environment does not set are taken from the system that runs in this folder. */
const layerLocalConfig = ConfigProvider.layerAdd(
  Effect.sync(() =>
    ConfigProvider.fromUnknown(
      Option.match(readLocalState(), {
        onNone: () => ({}),
        onSome: ({ database_url, encryption_key }) => ({
          ...(database_url === undefined ? {} : { DATABASE_URL: database_url }),
          ...(encryption_key === undefined ? {} : { SEATRIAL_ENCRYPTION_KEY: encryption_key })
        })
      })
    )
  )
)

const layerKeyed = layerApi.pipe(Layer.provide(NodeHttpClient.layerNodeHttp))
const layerPublic = layerPublicApi.pipe(Layer.provide(NodeHttpClient.layerNodeHttp))

const withStoreFailure = Layer.catchCause((cause) => Layer.effectContext(Effect.fail(storeFailure(cause))))

const admin = async () => {
  const store = await import("@seatrial/store")
  const { makeAdminCommand } = await import("./admin/admin.ts")
  const { layerAdministrator } = await import("./admin/administrator.ts")
  const layerStore = Layer.mergeAll(
    store.Organizations.layerSql,
    store.Members.layerSql,
    store.Invitations.layerSql,
    store.ApiKeys.layerSql,
    store.Billing.layerSql,
    store.GpuHolds.layerSql,
    store.HostClasses.layerSql,
    store.ModelAdmin.layerSql,
    store.ModelReferences.layerSql,
    store.Reservations.layerSql,
    layerAdministrator
  ).pipe(Layer.provideMerge([store.Database.layerAdmin, Ids.layer]), Layer.provide(layerLocalConfig), withStoreFailure)
  const layerHubConnections = store.HubConnections.layerSql.pipe(Layer.provide(layerLocalConfig), withStoreFailure)
  return makeAdminCommand(layerHubConnections).pipe(Command.provide(layerStore))
}

const modelStore = async () => {
  const { Database, ModelAdmin, Organizations } = await import("@seatrial/store")
  return Layer.mergeAll(Organizations.layerSql, ModelAdmin.layerSql).pipe(
    Layer.provideMerge([Database.layerAdmin, Ids.layer]),
    Layer.provide(layerLocalConfig),
    withStoreFailure
  )
}

const bench = async () => {
  const { benchCommand } = await import("./bench.ts")
  return benchCommand.pipe(Command.provide(await modelStore()))
}

const showModel = async () => {
  const { showModel } = await import("./admin/models.ts")
  return showModel.pipe(Command.provide(await modelStore()))
}

const usage = async () => {
  const { Billing, Database, Organizations, UsageSums } = await import("@seatrial/store")
  const { usageSumsCommand } = await import("./usage.ts")
  const layerStore = Layer.mergeAll(Billing.layerSql, Organizations.layerSql, UsageSums.layerSql).pipe(
    Layer.provideMerge([Database.layerAdmin, Ids.layer]),
    Layer.provide(layerLocalConfig),
    withStoreFailure
  )
  return usageSumsCommand.pipe(Command.provide(layerStore))
}

const decisions = async () => {
  const { Database, Decisions } = await import("@seatrial/store")
  return Decisions.layerSql.pipe(Layer.provide(Database.layerReader), Layer.provide(layerLocalConfig), withStoreFailure)
}

const why = async () => {
  const { makeWhyCommand } = await import("./why.ts")
  return makeWhyCommand(await decisions())
}

const upgradePreview = async () => {
  const { upgradePreviewCommand } = await import("./upgradePreview.ts")
  return upgradePreviewCommand.pipe(Command.provide(await decisions()))
}

const cleanWeights = async () => {
  const { Database, NeededWeights } = await import("@seatrial/store")
  const { cleanWeightsCommand } = await import("./cleanWeights.ts")
  const layerStore = NeededWeights.layerSql.pipe(Layer.provide(Database.layer), Layer.provide(layerLocalConfig), withStoreFailure)
  return cleanWeightsCommand.pipe(Command.provide(layerStore))
}

const migrate = async () => {
  const { Database } = await import("@seatrial/store")
  const { makeMigrateCommand } = await import("./migrate.ts")
  // Each attempt gets a new pool, because a pool that could not connect never recovers.
  const withOwner = <A, E>(effect: Effect.Effect<A, E, SqlClient.SqlClient>) => Effect.suspend(() => Effect.provide(effect, Layer.fresh(Database.layerOwner)))
  return makeMigrateCommand({
    migrate: withOwner(Database.migrate),
    completeIndexes: withOwner(Database.completeIndexes),
    missingRoles: withOwner(Database.missingRoles)
  })
}

/** Builds the command tree. Only the commands that the arguments name are loaded completely. */
const makeCommand = async (args: ReadonlyArray<string>) =>
  Command.make("seatrial").pipe(
    Command.withDescription("Seatrial serves open-weights models on Kubernetes GPUs; each model passes a trial before it carries traffic."),
    Command.withSubcommands([
      previewCommand.pipe(Command.provide(layerKeyed)),
      deployCommand.pipe(Command.provide(layerKeyed)),
      deploymentsCommand.pipe(Command.provide(layerKeyed)),
      statusCommand.pipe(Command.provide(layerKeyed)),
      cancelCommand.pipe(Command.provide(layerKeyed)),
      requestsCommand.pipe(Command.provide(layerKeyed)),
      makeReceiptsCommand(layerKeyed, layerPublic),
      makeModelsCommand(layerKeyed, await lazily(args, "show", "Shows how accurate the memory estimate of a model was. Reads the database.", showModel)),
      scaleCommand.pipe(Command.provide(layerKeyed)),
      topCommand.pipe(Command.provide(layerKeyed)),
      catalogCommand.pipe(Command.provide(layerPublic)),
      auditCommand.pipe(Command.provide(layerKeyed)),
      suspicionsCommand.pipe(Command.provide(layerKeyed)),
      spendingCommand.pipe(Command.provide(layerKeyed)),
      logsCommand.pipe(Command.provide(layerKeyed)),
      chatCommand.pipe(Command.provide(layerKeyed)),
      openCommand.pipe(Command.provide(layerPublic)),
      loginCommand.pipe(Command.provide(NodeHttpClient.layerNodeHttp)),
      logoutCommand,
      profilesCommand,
      await lazily(args, "admin", "Administration. Uses the database directly.", admin),
      await lazily(args, "bench", "Benchmarks of models. Reads the database.", bench),
      await lazily(args, "usage", "Tokens, cost and GPU time of all organizations. Reads the database.", usage),
      await lazily(args, "why", "Shows why the operator acted on a deployment. Reads the database.", why),
      await lazily(args, "upgrade-preview", "Lists recorded decisions that this version would make differently. Reads the database.", upgradePreview),
      await lazily(args, "images", "Lists the images and digests that Kubernetes manifests name, for a mirror.", () =>
        import("./images.ts").then(({ imagesCommand }) => imagesCommand)
      ),
      serverCommand,
      operatorCommand,
      gatewayCommand,
      await lazily(args, "fetch", "Downloads and verifies a model's files. Download Jobs run this command.", () =>
        import("./fetch.ts").then(({ fetchCommand }) => fetchCommand)
      ),
      await lazily(args, "copy-weights", "Copies a model's files from the weights store to a node and verifies them.", () =>
        import("./copyWeights.ts").then(({ copyWeightsCommand }) => copyWeightsCommand)
      ),
      await lazily(args, "check-weights", "Checks that a model's files in the weights store are unchanged since the download.", () =>
        import("./checkWeights.ts").then(({ checkWeightsCommand }) => checkWeightsCommand)
      ),
      await lazily(args, "clean-weights", "Removes downloaded weights that no model has needed for some time.", cleanWeights),
      await lazily(args, "merge-weights", "Merges a LoRA adapter into its base's weights.", () =>
        import("./mergeWeights.ts").then(({ mergeWeightsCommand }) => mergeWeightsCommand)
      ),
      await lazily(args, "migrate", "Brings the database up to date.", migrate)
    ])
  )

/**
 * Runs the command with these arguments and all its layers. Signals and the exit code are left to the process. The
 * failure contains the exit code.
 */
export const runCommand = (args: ReadonlyArray<string>) =>
  Effect.promise(() => makeCommand(args)).pipe(
    Effect.flatMap((command) => Command.runWith(command, { version: "0.1.0" })(args)),
    Effect.catchTag("ShowHelp", (help) => Effect.fail(help.errors.length === 0 ? help : new UsageError())),
    Effect.catchDefect(reportDefect),
    Effect.provide([NodeServices.layer, layerPresenter]),
    Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)]))
  )
