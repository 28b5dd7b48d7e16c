#!/usr/bin/env node
// The whole of the package takes a third of a second to load.
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Billing, Database, GpuHolds, HubConnections, Invitations, Members, ModelAdmin, Organizations, Reservations } from "@seatrial/store"
import { ConfigProvider, Effect, Layer, Logger, Option } from "effect"
import { Command } from "effect/cli"
import { makeAdminCommand } from "./admin/admin.ts"
import { storeFailure } from "./admin/storeFailure.ts"
import { layerApi, layerPublicApi } from "./apiAccess.ts"
import { auditCommand } from "./audit.ts"
import { deployCommand, previewCommand } from "./deploy.ts"
import { cancelCommand, deploymentsCommand, statusCommand } from "./deployments.ts"
import { fetchCommand } from "./fetch.ts"
import { readLocalState } from "./localState.ts"
import { makeMigrateCommand } from "./migrate.ts"
import { catalogCommand, modelsCommand } from "./models.ts"
import { gatewayCommand, operatorCommand, serverCommand } from "./programs.ts"
import { receiptsCommand, requestsCommand } from "./requests.ts"
import { tellDefect } from "./tellDefect.ts"
import { layerPresenter, WrongUse } from "./WrongUse.ts"

/** What the environment leaves open is taken from the system started in this folder. */
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

const orSentence = Layer.catchCause((cause) => Layer.effectContext(Effect.fail(storeFailure(cause))))

const layerStore = Layer.mergeAll(
  Organizations.layerSql,
  Members.layerSql,
  Invitations.layerSql,
  ApiKeys.layerSql,
  Billing.layerSql,
  GpuHolds.layerSql,
  ModelAdmin.layerSql,
  Reservations.layerSql
).pipe(Layer.provideMerge([Database.layerMigrated, Ids.layer]), Layer.provide(layerLocalConfig), orSentence)

const layerHubConnections = HubConnections.layerSql.pipe(Layer.provide(layerLocalConfig), orSentence)

/** With a pool of its own for each try, since one that could not connect stays so. */
const migrateOnce = Effect.suspend(() => Effect.provide(Database.migrate, Layer.fresh(Database.layer)))

Command.make("seatrial").pipe(
  Command.withDescription("Seatrial serves open-weights models on Kubernetes GPUs; each model passes a trial before it carries traffic."),
  Command.withSubcommands([
    previewCommand.pipe(Command.provide(layerKeyed)),
    deployCommand.pipe(Command.provide(layerKeyed)),
    deploymentsCommand.pipe(Command.provide(layerKeyed)),
    statusCommand.pipe(Command.provide(layerKeyed)),
    cancelCommand.pipe(Command.provide(layerKeyed)),
    requestsCommand.pipe(Command.provide(layerKeyed)),
    receiptsCommand.pipe(Command.provide(layerKeyed)),
    modelsCommand.pipe(Command.provide(layerKeyed)),
    catalogCommand.pipe(Command.provide(layerPublic)),
    auditCommand.pipe(Command.provide(layerKeyed)),
    makeAdminCommand(layerHubConnections).pipe(Command.provide(layerStore)),
    serverCommand,
    operatorCommand,
    gatewayCommand,
    fetchCommand,
    makeMigrateCommand(migrateOnce)
  ]),
  Command.run({ version: "0.1.0" }),
  Effect.catchTag("ShowHelp", (help) => Effect.fail(help.errors.length === 0 ? help : new WrongUse())),
  Effect.catchDefect(tellDefect),
  Effect.provide([NodeServices.layer, layerPresenter]),
  Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
  NodeRuntime.runMain
)
