import { assert, layer } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { namespace } from "./clusterObjects.ts"
import { restartCounts } from "./restartCounts.ts"
import { ServedRelease } from "./ServedRelease.ts"

layer(ServedRelease.layer, { timeout: 25 * 60_000, excludeTestServices: true })("the chart on two real nodes", (it) => {
  it.effect("the built image and the embedded Postgres start without a restart, and the model answers at the address of the gateway's Service", () =>
    Effect.gen(function* () {
      const { helm, inference, kube, model } = yield* ServedRelease
      assert.isNotEmpty(wholeOf(yield* ask(inference, model)).text)
      const counts = yield* restartCounts({ kube })
      assert.isNotEmpty(counts)
      assert.deepStrictEqual(
        counts.filter((count) => !count.endsWith(" 0")),
        []
      )
      const pods = yield* kube.list(Pod, { namespace, labelSelector: "app.kubernetes.io/component in (server, gateway)" })
      assert.deepStrictEqual([...new Set(pods.map(({ spec }) => spec?.nodeName))].sort(), ["node-0", "node-1"])
      assert.match(yield* helm("test", "seatrial", "--timeout", "5m"), /Phase:\s+Succeeded/)
    })
  )
})
