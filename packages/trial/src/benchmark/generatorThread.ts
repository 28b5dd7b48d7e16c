import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as sleep } from "node:timers/promises"
import { parentPort, workerData } from "node:worker_threads"
import { promptTokens } from "../promptTokens.ts"
import { EngineConnection, type Exchange, now, type Pulse } from "./EngineConnection.ts"
import { isOrders, isThreadMessage, type Orders, sharedAt, type ThreadAnswer, type ThreadMessage, type ThreadStep } from "./generatorMessages.ts"
import type { RequestRecord, ThreadReport } from "./RequestRecord.ts"

// One thread of the load generator. Each stream of its closed loop sends the next request when the last one has ended.

/** Resolution of the delay histogram in milliseconds. Every sample includes it. */
const resolution = 2
/** Milliseconds to wait after an error: fast failures must not become a flood of requests. */
const afterFailure = 100

const delays = monitorEventLoopDelay({ resolution })

const outcomeOf = (exchange: Exchange, inputTokens: number, outputTokens: number): string => {
  if (exchange.outcome !== "ended") return exchange.outcome
  const { usage } = exchange
  if (usage === null || exchange.arrivals.length === 0) return "no_usage"
  return usage.prompt === inputTokens && usage.completion === outputTokens ? "answered" : "wrong_counts"
}

/** The time of the first chunk of each stream that has one. */
const firstsOf = (answers: ReadonlyArray<Pick<RequestRecord, "arrivals" | "stream">>): ReadonlyArray<number> => {
  const firsts = new Map<number, number>()
  for (const { arrivals, stream } of answers) {
    const [first] = arrivals
    if (first !== undefined) firsts.set(stream, Math.min(firsts.get(stream) ?? first, first))
  }
  return [...firsts.values()]
}

const makeThread = (orders: Orders) => {
  const shared = new Int32Array(orders.shared)
  const pulse: Pulse = {
    beat: (at) => void Atomics.store(shared, sharedAt.lastTokenAt, Math.floor(at - orders.startedAt)),
    last: () => orders.startedAt + Atomics.load(shared, sharedAt.lastTokenAt)
  }
  const connect = () => new EngineConnection(orders.host, orders.port, { pulse })
  const connections: Array<EngineConnection> = []
  let records: Array<RequestRecord> = []
  let idleAt: Array<number> = []
  let streams: ReadonlyArray<number> = []

  const recordOf = (stream: number, exchange: Exchange, step: ThreadStep): RequestRecord => ({
    stream,
    sentAt: exchange.sentAt,
    arrivals: [...exchange.arrivals],
    outcome: outcomeOf(exchange, orders.inputTokens, step.outputTokens),
    tokens: exchange.usage?.completion ?? 0
  })
  const arrivalsUnderWay = ({ underWay }: EngineConnection, index: number) =>
    underWay === null ? [] : [{ arrivals: underWay.arrivals, stream: streams[index] ?? index }]
  const runStream = async (connection: EngineConnection, stream: number, step: ThreadStep) => {
    // Sends the first request even if the thread started after the end of the step: otherwise nothing would be
    // measured.
    for (let sent = 0; sent < step.perStream && (sent === 0 || Atomics.load(shared, sharedAt.stop) === 0); sent++) {
      const seed = Atomics.add(shared, sharedAt.seed, 1)
      const prompt = promptTokens(orders.vocabSize, orders.inputTokens, seed).join(",")
      const body = `${orders.body},"max_tokens":${step.outputTokens},"prompt":[${prompt}]}`
      const record = recordOf(stream, await connection.exchange(orders.path, body), step)
      records.push(record)
      Atomics.add(shared, sharedAt.ended, 1)
      if (record.outcome !== "answered" && Atomics.load(shared, sharedAt.stop) === 0) await sleep(afterFailure)
    }
    idleAt.push(now())
  }
  return {
    run: async (step: ThreadStep): Promise<ThreadReport> => {
      records = []
      idleAt = []
      streams = step.streams
      // Opens new connections: an engine may close idle ones between two steps at any moment.
      for (const connection of connections) connection.close()
      while (connections.length < step.streams.length) connections.push(connect())
      delays.reset()
      delays.enable()
      await Promise.all(step.streams.map((stream, index) => runStream(connections[index] ?? connect(), stream, step)))
      delays.disable()
      return { records, idleAt, delayP99: Math.max(0, delays.percentile(99) / 1e6 - resolution) }
    },
    /** Reports only chunks: a report of everything would delay the streams. */
    peek: (): ThreadAnswer => {
      const answersSoFar = [...records.map(({ arrivals, stream }) => ({ arrivals, stream })), ...connections.flatMap(arrivalsUnderWay)]
      return { kind: "peeked", firsts: firstsOf(answersSoFar), arrivals: Float64Array.from(answersSoFar.flatMap(({ arrivals }) => arrivals)) }
    },
    /** Ends the current requests as `unfinished`. */
    cut: () => {
      for (const connection of connections) connection.close()
    }
  }
}

if (parentPort !== null && isOrders(workerData)) {
  const port = parentPort
  const thread = makeThread(workerData)
  const answer = (words: ThreadAnswer) => port.postMessage(words)
  const take = async (message: ThreadMessage) => {
    if (message.kind === "cut") thread.cut()
    else if (message.kind === "peek") answer(thread.peek())
    else answer({ kind: "ended", report: await thread.run(message.step) })
  }
  port.on("message", (message: unknown) => {
    if (isThreadMessage(message)) take(message).catch((fault: unknown) => answer({ kind: "fault", message: String(fault) }))
  })
}
