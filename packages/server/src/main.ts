import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgClient } from "@effect/sql-pg"
import { Ids, layerLog, layerTracing, reportStartProblem } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import {
  AcrossPool,
  ApiKeys,
  AuditEvents,
  Billing,
  Catalog,
  Database,
  Deployments,
  HostClasses,
  HubConnections,
  layerProbe,
  layerRetention,
  OrgModels,
  OwnModels,
  Requests,
  Suspicions
} from "@seatrial/store"
import { Effect, Layer, Runtime } from "effect"
import { HttpServer } from "effect/http"
import { layerMetrics, metricsPort } from "./layerMetrics.ts"
import { lingerOnClose } from "./lingerOnClose.ts"
import { makeNodeServer } from "./nodeServer.ts"
import { observeRequests } from "./observeRequests.ts"
import { makeApp } from "./Server.ts"
import { listening, retention, ServerSettings } from "./ServerSettings.ts"

// The lookup of a key determines its organization, and the catalog lists models of all organizations, so both read
// across organizations. Keys have a separate pool, so that catalog reads cannot take their connections.
const layerKeys = ApiKeys.layerSql.pipe(Layer.provide(Layer.effect(PgClient.PgClient, AcrossPool)))
const layerCrossOrganization = Layer.mergeAll(layerKeys, Catalog.layerServer).pipe(Layer.provide(Database.layerAcrossOrganizations))

const layerServices = Layer.mergeAll(
  layerCrossOrganization,
  AuditEvents.layerSql,
  Suspicions.layerSql,
  Billing.layerSql,
  Deployments.layerSql,
  HostClasses.layerSql,
  HubConnections.layerSql,
  OrgModels.layerSql,
  OwnModels.layerSql,
  Requests.layerSql,
  Hub.layer,
  ServerSettings.layerConfig
).pipe(Layer.provideMerge([Database.layerServer, Ids.layer]))

const layerNode = Layer.unwrap(
  Effect.gen(function* () {
    const { clients, ...options } = yield* listening
    const isObserved = (yield* metricsPort) > 0
    return NodeHttpServer.layerServer(() => {
      const server = lingerOnClose(makeNodeServer(clients), 1_000)
      if (isObserved) observeRequests(server)
      return server
    }, options)
  })
)

const layerServer = Layer.unwrap(Effect.map(makeApp, (app) => HttpServer.serve(app))).pipe(HttpServer.withLogAddress, Layer.provide(layerNode))

Layer.mergeAll(layerServer, layerProbe, Layer.unwrap(Effect.map(retention, layerRetention))).pipe(
  Layer.provide(layerServices),
  Layer.provide([NodeHttpServer.layerHttpServices, NodeServices.layer]),
  // Built before the server, so that metrics and traces cover the first request.
  Layer.provide([layerMetrics, layerTracing("seatrial-server")]),
  Layer.provide(layerLog),
  Layer.launch,
  reportStartProblem("seatrial server"),
  // A stop signal (exit code 130) is a normal exit.
  NodeRuntime.runMain({ teardown: (exit, onExit) => Runtime.defaultTeardown(exit, (code) => onExit(code === 130 ? 0 : code)) })
)
