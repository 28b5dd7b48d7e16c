import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { KubeClient } from "@seatrial/kube"
import { AppliedResources, GpuHolds, HostClasses, HubConnections, Runs } from "@seatrial/store"
import { layerTestDatabase } from "@seatrial/store/testing"
import { ConfigProvider, Effect, Layer } from "effect"
import { inject } from "vitest"
import { Operator } from "../src/Operator.ts"

/** Services that are not used before the settings are read, and a database. */
const layerUnused = Layer.mergeAll(
  Layer.mock(AppliedResources)({}),
  Layer.mock(GpuHolds)({}),
  Layer.mock(HostClasses)({}),
  Layer.mock(Hub)({}),
  Layer.mock(HubConnections)({}),
  Layer.mock(KubeClient)({}),
  Layer.mock(Runs)({}),
  Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))),
  Ids.layer
)

layer(layerUnused)("the operator", (it) => {
  it.effect.each([{ OPERATOR_CONCURRENCY: "many" }, { OPERATOR_WEBHOOK_URL: "hooks.example.com" }, { OPERATOR_FAILED_CAPABILITY: "ignore" }])(
    "does not start with the wrong setting %j",
    (settings) =>
      Effect.gen(function* () {
        const program = Operator.layer.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings))))
        const error = yield* Effect.flip(Effect.scoped(Layer.build(program)))
        assert.include(String(error), Object.keys(settings)[0] ?? "none")
      })
  )
})
