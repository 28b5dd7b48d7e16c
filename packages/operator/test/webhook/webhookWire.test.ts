import { randomBytes } from "node:crypto"
import { createServer, type IncomingMessage, type RequestListener } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { type UnsentAlarm, UnsentAlarms } from "@seatrial/store"
import { ConfigProvider, Deferred, Effect, Layer, Logger, Option, Result } from "effect"
import { FetchHttpClient } from "effect/http"
import { Webhook } from "standardwebhooks"
import { sendAlarms } from "../../src/webhook/sendAlarms.ts"
import { WebhookSettings } from "../../src/webhook/WebhookSettings.ts"
import { alarmOf } from "./alarmOf.ts"

const secret = `whsec_${randomBytes(32).toString("base64")}`
const settingsOf = (variables: Readonly<Record<string, string>>) => WebhookSettings.parse(ConfigProvider.fromUnknown(variables))

/** The address of a server on a free port, until the scope closes. */
const serve = (answer: RequestListener) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer(answer)
      server.listen(0, "127.0.0.1", () => {
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        const address = server.address()
        const port = address === null || typeof address === "string" ? 0 : address.port
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/hook`, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ url }) => url))

interface Received {
  readonly method: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const headersOf = ({ headers }: IncomingMessage) => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

/** A receiver that answers 200 with a body that never ends. */
const receive = (received: Deferred.Deferred<Received>): RequestListener => {
  return async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    response.writeHead(200).write("{")
    Deferred.doneUnsafe(received, Effect.succeed({ method: request.method, headers: headersOf(request), body: Buffer.concat(chunks).toString() }))
  }
}

/** Sends one alarm to that address. The second effect ends when the alarm counts as sent. */
const sendOne = Effect.fnUntraced(function* (variables: Readonly<Record<string, string>>, alarm: UnsentAlarm) {
  const sent = yield* Deferred.make<void>()
  let isSent = false
  const store = Layer.mock(UnsentAlarms)({
    list: Effect.sync(() => (isSent ? [] : [alarm])),
    markSent: () =>
      Effect.andThen(
        Effect.sync(() => {
          isSent = true
        }),
        Deferred.succeed(sent, undefined)
      )
  })
  yield* Effect.provide(sendAlarms(yield* settingsOf(variables)), Layer.mergeAll(store, FetchHttpClient.layer))
  return { isSent: () => isSent, sent: Deferred.await(sent) }
})

describe("a message of the webhook", () => {
  it.live("is verified by the library of Standard Webhooks, with the node and the organization of the engine", () =>
    Effect.gen(function* () {
      const received = yield* Deferred.make<Received>()
      const url = yield* serve(receive(received))
      const { sent } = yield* sendOne({ OPERATOR_WEBHOOK_URL: url, OPERATOR_WEBHOOK_SECRET: secret }, alarmOf(1))
      const { body, headers, method } = yield* Deferred.await(received)
      yield* sent
      const { suspicion, ...owner } = alarmOf(1)
      assert.deepStrictEqual(
        [method, headers["content-type"], headers["user-agent"], headers["webhook-id"]],
        ["POST", "application/json", "seatrial", owner.id]
      )
      const verified: unknown = new Webhook(secret).verify(body, headers)
      const data = { ...suspicion, org_id: owner.orgId, node: "node-1" }
      assert.deepStrictEqual(verified, { type: "suspicion.created", timestamp: suspicion.created_at, data })
      assert.throws(() => new Webhook(secret).verify(body.replace("node-1", "node-2"), headers))
    }).pipe(Effect.scoped)
  )

  it.live("has no signature without a key, and does not follow a redirect", () =>
    Effect.gen(function* () {
      const received = yield* Deferred.make<Received>()
      const refused = yield* Deferred.make<string>()
      const url = yield* serve((request, response) => {
        Deferred.doneUnsafe(received, Effect.succeed({ method: request.method, headers: headersOf(request), body: "" }))
        // A client that follows it gets 200 the second time.
        if (request.url === "/followed") response.writeHead(200).end()
        else response.writeHead(307, { location: "/followed" }).end()
      })
      const logger = Logger.make(({ message }) => Deferred.doneUnsafe(refused, Effect.succeed(String(message))))
      const { isSent } = yield* Effect.provide(sendOne({ OPERATOR_WEBHOOK_URL: url }, alarmOf(2)), Logger.layer([logger]))
      const { headers } = yield* Deferred.await(received)
      assert.isUndefined(headers["webhook-signature"])
      assert.include(yield* Deferred.await(refused), "status 307")
      assert.isFalse(isSent())
    }).pipe(Effect.scoped)
  )
})

describe("the settings of the webhook", () => {
  it.effect.each([
    [{}, null],
    [{ OPERATOR_WEBHOOK_URL: "", OPERATOR_WEBHOOK_SECRET: "" }, null],
    [{ OPERATOR_WEBHOOK_SECRET: secret }, null],
    [{ OPERATOR_WEBHOOK_URL: "hooks.example.com" }, "OPERATOR_WEBHOOK_URL"],
    [{ OPERATOR_WEBHOOK_URL: "ftp://hooks.example.com" }, "OPERATOR_WEBHOOK_URL"],
    [{ OPERATOR_WEBHOOK_URL: "https://user:password@hooks.example.com" }, "OPERATOR_WEBHOOK_URL"],
    [{ OPERATOR_WEBHOOK_URL: "https://hooks.example.com", OPERATOR_WEBHOOK_SECRET: "whsec_c2hvcnQ=" }, "OPERATOR_WEBHOOK_SECRET"],
    [{ OPERATOR_WEBHOOK_URL: "https://hooks.example.com", OPERATOR_WEBHOOK_SECRET: secret.slice(6) }, "OPERATOR_WEBHOOK_SECRET"],
    [{ OPERATOR_WEBHOOK_URL: "https://hooks.example.com", OPERATOR_WEBHOOK_SECRET: `${secret.slice(0, -4)}?` }, "OPERATOR_WEBHOOK_SECRET"]
  ] as const)("%j: no webhook, or an error that names the variable", ([variables, expected]) =>
    Effect.gen(function* () {
      const result = yield* Effect.result(settingsOf(variables))
      if (expected === null) assert.deepStrictEqual(Result.getOrThrow(result), null)
      else assert.include(String(Option.getOrThrow(Result.getFailure(result)).cause), expected)
    })
  )
})
