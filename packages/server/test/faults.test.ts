import { connect, createServer, type Socket } from "node:net"
import { assert, describe, it as each, layer } from "@effect/vitest"
import { Database } from "@seatrial/store"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { inject } from "vitest"
import { unavailableMessage } from "../src/boundary.ts"
import { jsonOf, layerStage, layerStageOn, makeTenant, Stage } from "./stage.ts"

/** A proxy between the server and Postgres. `cut` closes and refuses connections, `swallow` pauses all traffic, and `mend` resumes it with what was held back. */
class Wire extends Context.Service<
  Wire,
  { readonly port: number; readonly cut: Effect.Effect<void>; readonly swallow: Effect.Effect<void>; readonly mend: Effect.Effect<void> }
>()("seatrial/test/Wire") {
  static readonly layer = Layer.effect(
    Wire,
    Effect.gen(function* () {
      const target = new URL(inject("postgres"))
      const open = new Set<Socket>()
      let isOpen = true
      let swallowing = false
      const server = createServer((socket) => {
        if (!isOpen) return socket.destroy()
        const upstream = connect(Number(target.port), target.hostname)
        for (const [from, to] of [
          [socket, upstream],
          [upstream, socket]
        ] as const) {
          open.add(from)
          from.on("error", () => undefined)
          from.on("close", () => {
            open.delete(from)
            to.destroy()
          })
          from.pipe(to)
          if (swallowing) from.pause()
        }
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => {
          server.listen(0, "127.0.0.1", () => resume(Effect.void))
        }),
        () =>
          Effect.callback<void>((resume) => {
            for (const socket of open) socket.destroy()
            server.close(() => resume(Effect.void))
          })
      )
      const address = server.address()
      if (address === null || typeof address === "string") return yield* Effect.die(new Error("no port"))
      return Wire.of({
        port: address.port,
        cut: Effect.sync(() => {
          isOpen = false
          for (const socket of open) socket.destroy()
        }),
        swallow: Effect.sync(() => {
          swallowing = true
          for (const socket of open) socket.pause()
        }),
        mend: Effect.sync(() => {
          isOpen = true
          swallowing = false
          for (const socket of open) socket.resume()
        })
      })
    })
  )
}

const layerDatabase = Layer.unwrap(
  Effect.gen(function* () {
    const { port } = yield* Wire
    const url = new URL(Redacted.value(yield* makeTestDatabase(inject("postgres"))))
    url.hostname = "127.0.0.1"
    url.port = String(port)
    return Database.layerUrl(Redacted.make(url.href))
  })
)

layer(layerStageOn(layerDatabase.pipe(Layer.provide(Wire.layer))).pipe(Layer.provideMerge(Wire.layer)), { excludeTestServices: true })(
  "while Postgres is unavailable",
  (it) => {
    it.effect("every operation returns 503 with Retry-After, and works again when the database returns", () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const wire = yield* Wire
        const { key } = yield* makeTenant()
        const reads = ["/readyz", "/v1/requests", "/v1/deployments", "/v1/requests/req_01890000000000000000000000"]
        yield* call("GET", "/v1/requests", { key })
        yield* wire.cut
        for (const path of reads) {
          const answer = yield* call("GET", path, { key })
          assert.strictEqual(answer.status, 503, `${path} ${answer.text}`)
          assert.match(String(answer.headers["retry-after"]), /^[1-9]\d*$/)
          assert.deepNestedInclude(jsonOf(answer), { "error.code": "unavailable", "error.type": "api_error" })
        }
        const body = { source: { kind: "model_hub", repo: "seatrial/tiny-chat" } }
        const create = call("POST", "/v1/deployments", { key, body, headers: { "idempotency-key": "over-a-cut" } })
        assert.strictEqual((yield* create).status, 503)
        assert.strictEqual((yield* call("GET", "/healthz")).status, 200)
        yield* wire.mend
        yield* call("GET", "/readyz").pipe(Effect.repeat({ until: ({ status }) => status === 200 }), Effect.timeout("10 seconds"))
        assert.strictEqual((yield* create).status, 201)
        assert.strictEqual((yield* create).status, 200)
      })
    )
  }
)

layer(layerStage({ SERVER_REQUEST_TIMEOUT: "300 millis" }), { excludeTestServices: true })("while Postgres does not answer", (it) => {
  it.effect("every request ends within the request timeout", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      const sql = yield* SqlClient.SqlClient
      const answer = yield* Effect.andThen(sql`LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE`, call("GET", "/v1/requests", { key })).pipe(sql.withTransaction)
      assert.strictEqual(answer.status, 503)
      // On a busy machine a request can exceed this short limit.
      yield* call("GET", "/v1/requests", { key }).pipe(Effect.repeat({ until: ({ status }) => status === 200 }), Effect.timeout("10 seconds"))
    })
  )
})

layer(layerStageOn(layerDatabase.pipe(Layer.provide(Wire.layer)), { SERVER_REQUEST_TIMEOUT: "300 millis" }).pipe(Layer.provideMerge(Wire.layer)), {
  excludeTestServices: true
})("while Postgres sends nothing", (it) => {
  it.effect("reads time out, and work again when Postgres resumes", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const wire = yield* Wire
      const { key } = yield* makeTenant()
      const id = `req_01890000${"0".repeat(18)}`
      const reads = [`/v1/requests/${id}`, `/v1/receipts/${id}`, "/v1/requests"]
      const statuses = Effect.forEach(reads, (path) => Effect.map(call("GET", path, { key }), ({ status }) => status), { concurrency: "unbounded" })
      const asUsual = statuses.pipe(Effect.repeat({ until: (found) => String(found) === "404,404,200" }), Effect.timeout("10 seconds"))
      yield* asUsual
      yield* wire.swallow
      // Concurrently, because each read also waits until the driver gives up canceling its statement.
      const answers = yield* Effect.forEach(reads, (path) => call("GET", path, { key }), { concurrency: "unbounded" })
      for (const [index, answer] of answers.entries()) {
        assert.strictEqual(answer.status, 503, `${reads[index]} ${answer.text}`)
        assert.strictEqual(answer.headers["retry-after"], "1")
        assert.deepNestedInclude(jsonOf(answer), { "error.code": "unavailable", "error.request_id": answer.headers["x-request-id"] })
      }
      assert.strictEqual((yield* call("GET", "/healthz")).status, 200)
      yield* wire.mend
      yield* asUsual
    })
  )
})

describe("a database that", () => {
  const of = (code: string, operation = "query") => ({ cause: Object.assign(new Error(code), { code }), message: code, operation })
  const cases: ReadonlyArray<readonly [what: string, reason: SqlError.SqlErrorReason, isUnavailable: boolean]> = [
    ["lost the connection", new SqlError.ConnectionError(of("08006")), true],
    ["refuses connections for now", new SqlError.UnknownError(of("55000", "connect")), true],
    ["does not exist yet", new SqlError.SqlSyntaxError(of("3D000", "connect")), true],
    ["is being shut down", new SqlError.UnknownError(of("57P01")), true],
    ["is starting up", new SqlError.UnknownError(of("57P03", "connect")), true],
    ["has no connection left", new SqlError.UnknownError(of("53300", "connect")), true],
    ["has no disk left", new SqlError.UnknownError(of("53100")), true],
    ["has become a standby", new SqlError.UnknownError(of("25006")), true],
    ["takes too long", new SqlError.StatementTimeoutError(of("57014")), true],
    ["refuses a statement for its state", new SqlError.UnknownError(of("55000")), false],
    ["does not know a column", new SqlError.SqlSyntaxError(of("42703")), false],
    ["reports a violated constraint", new SqlError.ConstraintError(of("23514")), false]
  ]
  for (const [what, reason, isUnavailable] of cases) {
    each(`${what} ${isUnavailable ? "is temporarily unavailable" : "indicates a fault of the server"}`, () =>
      assert.strictEqual(unavailableMessage(new SqlError.SqlError({ reason })) !== null, isUnavailable)
    )
  }
})
