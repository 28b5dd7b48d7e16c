import { Agent, type IncomingMessage, request } from "node:http"
import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type Call, chunk, done, finish, makeEngine, opening, usageFrame, wholeAnswer } from "../../packages/gateway/test/fakeEngine.ts"
import { type GatewayProcess, startGateway } from "../../packages/gateway/test/gatewayProcess.ts"
import { layerStore, makeServed } from "../../packages/gateway/test/serving.ts"

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const clients = 24

/** A slow engine: some requests are always in progress when a gateway gets the signal to stop. */
const slowly = async ({ body, response }: Call) => {
  if (!body.includes('"stream":true')) {
    await pause(40)
    return response.writeHead(200, { "content-type": "application/json" }).end(wholeAnswer("a"))
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const frame of [opening, chunk("a", 1), chunk("b", 2), chunk("c", 3)]) {
    response.write(frame)
    await pause(40)
  }
  return response.end(finish("stop") + usageFrame(3) + done)
}

/** One address for several gateways: new connections go to gateways that were ready at the last check, open ones stay. */
const openService = (gateways: ReadonlyArray<Pick<GatewayProcess, "address">>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const listed = new Set(gateways.map(({ address }) => address))
      const agent = new Agent({ keepAlive: true, maxSockets: clients })
      let next = 0
      agent.createConnection = () => {
        const all = [...listed]
        const { hostname, port } = new URL(all[next++ % all.length] ?? "")
        return connect(Number(port), hostname)
      }
      const look = async (address: string) => {
        const ready = await fetch(`${address}/readyz`).then(
          ({ status }) => status === 200,
          () => false
        )
        if (ready) listed.add(address)
        else listed.delete(address)
      }
      const timer = setInterval(() => void Promise.all([...listed].map(look)), 100)
      return { agent, list: (address: string) => void listed.add(address), close: () => clearInterval(timer) }
    }),
    ({ agent, close }) =>
      Effect.sync(() => {
        close()
        agent.destroy()
      })
  )

interface Answer {
  readonly id: string
  readonly text: string
  readonly closes: boolean
}

/** Asks over a connection that may have been used before. Nothing is tried again. */
const ask = (agent: Agent, key: string, model: string, stream: boolean) =>
  new Promise<Answer>((resolve, reject) => {
    const outgoing = request({ agent, host: "service", path: "/v1/chat/completions", method: "POST" })
    outgoing.setHeader("authorization", `Bearer ${key}`)
    outgoing.setHeader("content-type", "application/json")
    outgoing.on("error", reject)
    outgoing.on("response", (incoming: IncomingMessage) => {
      let text = ""
      incoming.on("data", (bytes: Buffer) => (text += bytes.toString("utf8")))
      incoming.on("error", reject)
      incoming.on("end", () => {
        const { headers, statusCode } = incoming
        const isComplete = stream ? text.endsWith(done) && text.includes('"finish_reason":"stop"') : text.includes('"content":"a"')
        if (statusCode !== 200 || !isComplete) return reject(new Error(`${statusCode}: ${text}`))
        resolve({ id: String(headers["x-request-id"]), text, closes: headers.connection === "close" })
      })
    })
    outgoing.end(JSON.stringify({ model, messages: [{ role: "user", content: "hi" }], stream }))
  })

layer(layerStore, { excludeTestServices: true })("gateways that are replaced one by one under load", (it) => {
  it.effect("lose no request of callers that keep their connections open, and each request has its record", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => void slowly(call))
      const { model, orgId, secret } = yield* makeServed("rollout", engine.url)
      const start = startGateway({ GATEWAY_DRAIN_SECONDS: "1", GATEWAY_GRACE_SECONDS: "20" })
      const [one, two, ...fresh] = yield* Effect.all([start, start, start, start], { concurrency: "unbounded" })
      const old = [one, two]
      const { agent, list } = yield* openService(old)
      const answers: Array<Answer> = []
      const lost: Array<unknown> = []
      let over = false
      const client = async (own: number) => {
        for (let count = own; !over; count++) {
          await ask(agent, secret, model, count % 2 === 0).then(
            (answer) => answers.push(answer),
            (cause: unknown) => lost.push(cause)
          )
          // Some connections rest between two requests.
          await pause((own * 7 + count * 13) % 40)
        }
      }
      const load = Promise.all(Array.from({ length: clients }, (_, own) => client(own)))
      const more = Effect.fnUntraced(function* (count: number) {
        const wanted = answers.length + count
        while (answers.length < wanted && lost.length === 0) yield* Effect.sleep("20 millis")
      })
      yield* more(4 * clients)
      for (const [which, gateway] of old.entries()) {
        list(fresh[which]?.address ?? "")
        gateway.signal("SIGTERM")
        assert.strictEqual(yield* gateway.exited, 0)
        yield* more(2 * clients)
      }
      over = true
      yield* Effect.promise(() => load)
      assert.deepStrictEqual(lost, [])
      // Both were busy when they got the signal to stop.
      assert.isAbove(answers.filter(({ closes }) => closes).length, clients)
      const sql = yield* SqlClient.SqlClient
      const records = yield* sql<{
        readonly id: string
      }>`SELECT id FROM requests WHERE org_id = ${orgId} AND state = 'completed' AND status_code = 200 ORDER BY id`
      assert.deepStrictEqual(
        records.map(({ id }) => id),
        answers.map(({ id }) => id).toSorted()
      )
      assert.strictEqual(engine.calls.length, answers.length)
    })
  )
})
