import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Ids } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { ApiKeys, AuditEvents, Catalog, Database, Deployments, HostClasses, HubConnections, OrgModels, Requests } from "@seatrial/store"
import { Effect, Layer, Logger, Runtime } from "effect"
import { HttpServer } from "effect/http"
import { makeNodeServer } from "./nodeServer.ts"
import { makeApp } from "./Server.ts"
import { listening, ServerSettings } from "./ServerSettings.ts"

const layerServices = Layer.mergeAll(
  ApiKeys.layerSql,
  AuditEvents.layerSql,
  Catalog.layerSql,
  Deployments.layerSql,
  HostClasses.layerSql,
  HubConnections.layerSql,
  OrgModels.layerSql,
  Requests.layerSql,
  Hub.layer,
  ServerSettings.layerConfig
).pipe(Layer.provideMerge([Database.layerMigrated, Ids.layer]))

const layerNode = Layer.unwrap(Effect.map(listening, ({ clients, ...options }) => NodeHttpServer.layerServer(() => makeNodeServer(clients), options)))

Layer.unwrap(Effect.map(makeApp, (app) => HttpServer.serve(app))).pipe(
  HttpServer.withLogAddress,
  Layer.provide(layerNode),
  Layer.provide(layerServices),
  Layer.provide([NodeHttpServer.layerHttpServices, NodeServices.layer]),
  Layer.provide(Logger.layer([Logger.consoleJson])),
  Layer.launch,
  // Being told to stop is no failure.
  NodeRuntime.runMain({ teardown: (exit, onExit) => Runtime.defaultTeardown(exit, (code) => onExit(code === 130 ? 0 : code)) })
)
