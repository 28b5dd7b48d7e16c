import { Effect, Schema } from "effect"
import { drawsOf } from "../../faults/Draw.ts"
import { httpRequest } from "../compare.ts"
import { table } from "../figures.ts"
import { HttpConnection } from "../generator/HttpConnection.ts"
import type { Lab } from "../Lab.ts"
import { makeRoute } from "../makeDeployments.ts"
import { BenchError, type Program } from "../Program.ts"
import { startGateway } from "../startGateway.ts"
import { startEngines } from "./startEngines.ts"

const conversations = 200
const turns = 10
const callers = 16
/** Characters of the first message of a conversation, of each further one, and of each answer. About four are a token. */
const [opening, question, answer] = [1_600, 200, 400]
/** The share of all tokens of all conversations that the caches hold together. */
const held = 0.6
const allTokens = (conversations * (opening + (turns - 1) * (question + answer))) / 4
const cacheTokens = Math.round(held * allTokens)
/** Requests that all engines together process at a time. */
const slots = 32

const Counts = Schema.fromJsonString(Schema.Struct({ prompt: Schema.Int, cached: Schema.Int }))

const message = (conversation: number, turn: number, length: number) => `${conversation}/${turn} `.repeat(length).slice(0, length)

const messagesOf = (conversation: number, turn: number) =>
  Array.from({ length: 2 * turn + 1 }, (_, index) =>
    index % 2 === 0
      ? { role: "user", content: message(conversation, index / 2, index === 0 ? opening : question) }
      : { role: "assistant", content: message(conversation, index, answer) }
  )

interface Conversing {
  /** The servers of which each request goes to a random one. */
  readonly servers: ReadonlyArray<Pick<Program, "host" | "port">>
  readonly key: string
  readonly model: string
}

/** Callers continue conversations in an order that a seed decides, one turn at a time. */
const converse = async ({ key, model, servers }: Conversing) => {
  const { integer } = drawsOf(1)
  const idle = Array.from({ length: conversations }, (_, conversation) => ({ conversation, turn: 0 }))
  let left = conversations * turns
  const call = async () => {
    const connections = servers.map(({ host, port }) => new HttpConnection(host, port))
    while (left > 0) {
      const [next] = idle.splice(integer(0, idle.length - 1), 1)
      const connection = connections[integer(0, connections.length - 1)]
      if (next === undefined || connection === undefined) break
      left--
      const body = JSON.stringify({ model, messages: messagesOf(next.conversation, next.turn) })
      const { status } = await connection.send(Buffer.from(httpRequest("POST", "/v1/chat/completions", key, body)))
      if (status !== 200) throw new Error(`status ${status}`)
      if (next.turn + 1 < turns) idle.push({ ...next, turn: next.turn + 1 })
    }
    for (const connection of connections) connection.close()
  }
  await Promise.all(Array.from({ length: callers }, call))
}

const serverOf = (url: string) => {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

/**
 * The share of prompt tokens that the engines' prefix caches held: of one engine, of four with the same total cache, and of
 * four to which callers send their requests at random, without the gateway.
 */
export const prefixHits = Effect.fnUntraced(function* (lab: Lab) {
  const ways = [
    [1, "gateway"],
    [4, "gateway"],
    [4, "random"]
  ] as const
  const fleets = yield* Effect.forEach(ways, ([count, way], index) =>
    Effect.gen(function* () {
      const urls = yield* startEngines({ count, slots: slots / count, millis: 20, cacheTokens: Math.round(cacheTokens / count) })
      return { count, way, urls, model: yield* makeRoute(lab, { number: 101 + index, urls }) }
    })
  )
  const gateway = yield* startGateway(lab, {
    name: "Seatrial's gateway",
    file: "packages/gateway/src/main.ts",
    settings: { GATEWAY_ENGINE_CONCURRENCY: String(slots / 4) }
  })
  const shares = yield* Effect.forEach(fleets, ({ model, urls, way }) =>
    Effect.gen(function* () {
      yield* Effect.tryPromise({
        try: () => converse({ servers: way === "gateway" ? [gateway] : urls.map(serverOf), key: lab.key, model }),
        catch: (cause) => new BenchError({ message: `A conversation failed: ${cause}` })
      })
      const counts = yield* Effect.forEach(urls, (url) =>
        Effect.promise(async () => Schema.decodeUnknownSync(Counts)(await (await fetch(`${url}/counts`)).text()))
      )
      const [prompt, cached] = [counts.reduce((sum, each) => sum + each.prompt, 0), counts.reduce((sum, each) => sum + each.cached, 0)]
      return cached / prompt
    })
  )
  const [single = Number.NaN] = shares
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`
  return `${conversations} conversations of ${turns} turns, of ${callers} callers at a time, in random order. The caches hold ${percent(held)} of all tokens together, however many engines share them. The target is 0.9 of one
engine's hits.

${table(
  ["engines", "prompt tokens in the cache", "of one engine's"],
  fleets.map(({ count, way }, index) => [
    way === "gateway" ? `${count}` : `${count}, each request to a random one`,
    percent(shares[index] ?? Number.NaN),
    ((shares[index] ?? Number.NaN) / single).toFixed(3)
  ])
)}`
})
