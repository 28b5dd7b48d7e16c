import { assert, layer } from "@effect/vitest"
import type { MetricFamily } from "@seatrial/domain"
import { storeMetrics } from "@seatrial/store"
import { Effect } from "effect"
import { freePort } from "../../../test/process/freePort.ts"
import { gatewayMetrics } from "../src/index.ts"
import { startGateway } from "./gatewayProcess.ts"
import { Url } from "./serving.ts"

const get = (url: string) => Effect.promise(async () => (await fetch(url)).text())

layer(Url.layer, { excludeTestServices: true })("the gateway's metrics", (it) => {
  it.effect("are the documented ones, on their own port only", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const { address } = yield* startGateway({ GATEWAY_METRICS_PORT: String(port) })
      assert.include(yield* get(`${address}/metrics`), "not_found")
      yield* get(`${address}/v1/chat/completions`)
      const shown = yield* get(`http://127.0.0.1:${port}/metrics`)
      const families = new Map<string, MetricFamily>([gatewayMetrics, storeMetrics].flatMap(Object.values).map(({ family }) => [family.name, family]))
      for (const [, name = "", type] of shown.matchAll(/^# TYPE (seatrial_\S+) (\S+)$/gm)) assert.strictEqual(families.get(name)?.type, type, name)
      assert.match(shown, /^seatrial_gateway_request_seconds_count\{endpoint="\/v1\/chat\/completions",status="4xx"\} 1$/m)
      assert.match(shown, /^seatrial_gateway_request_seconds_count\{endpoint="other",status="4xx"\} 1$/m)
      assert.match(shown, /^seatrial_gateway_requests_in_flight 0$/m)
      const headers = { accept: "application/openmetrics-text; version=1.0.0" }
      const open = yield* Effect.promise(async () => (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text())
      assert.match(open, /^# TYPE seatrial_gateway_refusals counter$/m)
      assert.match(open, /# \{request_id="req_[0-9a-z]+"\}/)
      assert.isTrue(open.endsWith("\n# EOF\n"))
    })
  )
})
