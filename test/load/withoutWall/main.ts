import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Ids } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { listening, makeApp, makeNodeServer, ServerSettings } from "@seatrial/server"
import {
  ApiKeys,
  AuditEvents,
  Billing,
  Catalog,
  Database,
  Deployments,
  HostClasses,
  HubConnections,
  OrgModels,
  OwnModels,
  Requests,
  Suspicions
} from "@seatrial/store"
import { Effect, Layer, Logger } from "effect"
import { HttpServer } from "effect/http"

/** The server with one pool that has the owner's rights and sets no organization, to measure the cost of row-level security. */
const layerServices = Layer.mergeAll(
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
  Hub.layer,
  ServerSettings.layerConfig
).pipe(Layer.provideMerge([Database.layerMigrated, Ids.layer]))

const layerNode = Layer.unwrap(Effect.map(listening, ({ clients, ...options }) => NodeHttpServer.layerServer(() => makeNodeServer(clients), options)))

Layer.unwrap(Effect.map(makeApp, (app) => HttpServer.serve(app))).pipe(
  Layer.provide(layerNode),
  Layer.provide(layerServices),
  Layer.provide([NodeHttpServer.layerHttpServices, NodeServices.layer]),
  Layer.provide(Logger.layer([Logger.consoleJson])),
  Layer.launch,
  NodeRuntime.runMain
)
