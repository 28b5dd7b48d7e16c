import { Context, Effect, Layer } from "effect"
import { makeCalls, none, type SeatrialClientOptions } from "./calls.ts"

import {
  catalogOperations,
  deploymentOperations,
  makeWaitForDeployment,
  modelOperations,
  orgOperations,
  requestOperations,
  systemOperations
} from "./operations.ts"

const make = (options: SeatrialClientOptions) =>
  Effect.map(makeCalls(options), (calls) => ({
    deployments: deploymentOperations(calls),
    requests: requestOperations(calls),
    org: orgOperations(calls),
    models: modelOperations(calls),
    catalog: catalogOperations(calls),
    /** What the organization may spend and has spent. */
    spending: { get: () => calls.call(calls.raw.spending.get(none)) },
    system: systemOperations(calls),
    waitForDeployment: makeWaitForDeployment(calls)
  }))

/**
 * A client of the HTTP API with one key: every operation of the contract with typed errors, lists as streams, and
 * retries of transient failures.
 */
export class SeatrialClient extends Context.Service<SeatrialClient>()("seatrial/SeatrialClient", { make }) {
  static readonly layer = (options: SeatrialClientOptions) => Layer.effect(SeatrialClient, SeatrialClient.make(options))
}
