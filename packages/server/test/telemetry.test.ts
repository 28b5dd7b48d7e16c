import { createServer } from "node:http"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Ids, type MetricFamily } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, Organizations, storeMetrics } from "@seatrial/store"
import { makeCaller, makeTestDatabase } from "@seatrial/store/testing"
import { Effect, Layer, Predicate, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { freePort } from "../../../test/process/freePort.ts"
import { startProcess } from "../../../test/process/startProcess.ts"
import { serverMetrics } from "../src/index.ts"

/** A listener on a free port: what it received, and its port. */
const listener = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly bodies: Array<string>; readonly close: () => void }>((resume) => {
    const bodies: Array<string> = []
    const server = createServer((request, response) => {
      let text = ""
      request.on("data", (chunk) => {
        text += String(chunk)
      })
      request.on("end", () => {
        bodies.push(`${request.url} ${text}`)
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed({ port: Predicate.isObject(address) ? Number(address.port) : 0, bodies, close: () => server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)
const get = (url: string) => Effect.tryPromise(async () => (await fetch(url)).text())

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"

it.live("the program exports its spans, stores the trace with the deployment, and serves its metrics only on the metrics port", () =>
  Effect.gen(function* () {
    const url = yield* makeTestDatabase(inject("postgres"))
    const collector = yield* listener
    const [port, metrics] = yield* Effect.all([freePort, freePort])
    const program = yield* startProcess([process.execPath, join(import.meta.dirname, "../src/main.ts")], {
      env: {
        ...process.env,
        DATABASE_URL: Redacted.value(url),
        SERVER_PORT: String(port),
        SERVER_METRICS_PORT: String(metrics),
        SEATRIAL_CURSOR_KEY: "0123456789abcdef",
        SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
        OTEL_BSP_SCHEDULE_DELAY: "50"
      }
    })
    yield* get(`http://127.0.0.1:${port}/healthz`).pipe(Effect.retry(Schedule.spaced("100 millis")))

    yield* Effect.gen(function* () {
      const { secret } = yield* makeCaller("traced")
      const response = yield* Effect.tryPromise(() =>
        fetch(`http://127.0.0.1:${port}/v1/deployments`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${Redacted.value(secret)}`,
            "content-type": "application/json",
            "idempotency-key": "once",
            traceparent: `00-${traceId}-00f067aa0ba902b7-01`
          },
          body: JSON.stringify({ source: { kind: "model_hub", repo: "seatrial/tiny-chat" } })
        })
      )
      assert.strictEqual(response.status, 201)
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ traceparent: string }>`SELECT traceparent FROM deployments`
      const [, trace = "", span = ""] = (row?.traceparent ?? "").split("-")
      assert.strictEqual(trace, traceId)
      // The span of the create reaches the collector.
      const exported = () => collector.bodies.filter((body) => body.startsWith("/v1/traces ")).join("\n")
      yield* Effect.repeat(Effect.sync(exported), { until: (text) => text.includes(`"spanId":"${span}"`), schedule: Schedule.spaced("20 millis") })
      assert.include(exported(), "seatrial-server")
      assert.include(exported(), `"traceId":"${traceId}"`)

      const shown = yield* get(`http://127.0.0.1:${metrics}/metrics`)
      const families = new Map<string, MetricFamily>([serverMetrics, storeMetrics].flatMap(Object.values).map(({ family }) => [family.name, family]))
      for (const [, name = "", type] of shown.matchAll(/^# TYPE (seatrial_\S+) (\S+)$/gm)) assert.strictEqual(families.get(name)?.type, type, name)
      assert.match(shown, /^seatrial_server_request_seconds_count\{route="\/v1\/deployments",method="POST",status="2xx"\} 1$/m)
      assert.match(shown, /^seatrial_server_requests_in_flight \d/m)
      assert.match(yield* get(`http://127.0.0.1:${port}/metrics`), /"code":"not_found"/)
      assert.strictEqual(yield* get(`http://127.0.0.1:${metrics}/v1/catalog/models`), "Not found. This port serves only GET /metrics.\n")

      for (const text of [shown, program.output(), exported()]) assert.notInclude(text, Redacted.value(secret))
    }).pipe(
      Effect.provide(
        Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql).pipe(Layer.provideMerge([Database.layerUrl(url), Ids.layer]))
      )
    )
  }).pipe(Effect.scoped)
)
