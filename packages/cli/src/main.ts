#!/usr/bin/env node
import { NodeHttpClient, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Database, HubConnections, Organizations } from "@seatrial/store"
import { ConfigProvider, Effect, Layer, Logger, Option } from "effect"
import { Command } from "effect/cli"
import { ApiClient } from "./ApiClient.ts"
import { adminCommand } from "./admin/admin.ts"
import { CommandError, tellDefect, WrongUse } from "./CommandError.ts"
import { cancelCommand, deployCommand, previewCommand, statusCommand } from "./deployments.ts"
import { fetchCommand } from "./fetch.ts"
import { readLocalState } from "./localState.ts"
import { gatewayCommand, operatorCommand, serverCommand } from "./programs.ts"

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

const layerApi = ApiClient.layer.pipe(Layer.provide(NodeHttpClient.layerNodeHttp))

const noStore = new CommandError({
  message: "Postgres cannot be used: set DATABASE_URL (and SEATRIAL_ENCRYPTION_KEY for hub connections), or run this where `npm start` runs.",
  exitCode: 2
})

const layerStore = Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, HubConnections.layerSql).pipe(
  Layer.provide([Database.layerMigrated, Ids.layer]),
  Layer.provide(layerLocalConfig),
  Layer.catchCause(() => Layer.effectContext(Effect.fail(noStore)))
)

Command.make("seatrial").pipe(
  Command.withDescription("Seatrial serves open-weights models on Kubernetes GPUs; each model passes a trial before it carries traffic."),
  Command.withSubcommands([
    previewCommand.pipe(Command.provide(layerApi)),
    deployCommand.pipe(Command.provide(layerApi)),
    statusCommand.pipe(Command.provide(layerApi)),
    cancelCommand.pipe(Command.provide(layerApi)),
    adminCommand.pipe(Command.provide(layerStore)),
    serverCommand,
    operatorCommand,
    gatewayCommand,
    fetchCommand
  ]),
  Command.run({ version: "0.1.0" }),
  Effect.catchTag("ShowHelp", (help) => Effect.fail(help.errors.length === 0 ? help : new WrongUse())),
  Effect.catchDefect(tellDefect),
  Effect.provide(NodeServices.layer),
  Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
  NodeRuntime.runMain
)
