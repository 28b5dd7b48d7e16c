import { Agent, request } from "node:http"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { Schema } from "effect"
import { type HonestReport, Measurement } from "../HonestReport.ts"

// The honest client: a separate process, so that neither the attack nor the engine delays its clock. It takes a measurement per line and answers with a report.

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Measurement))
type Kind = "whole" | "streamed" | "large" | "health" | "idle"

const agent = new Agent({ keepAlive: true })

/** Milliseconds after which an answer counts as lost. */
const patienceMillis = 20_000

interface Exchange {
  readonly url: string
  /** Null for a GET. */
  readonly body: string | null
  readonly secret: string
  readonly isKept: boolean
  readonly isComplete: (status: number | undefined, text: string) => boolean
}

/** Null if the whole answer came, else what was wrong. */
const exchange = ({ body, isComplete, isKept, secret, url }: Exchange): Promise<string | null> =>
  new Promise((resolve) => {
    const headers = body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body), authorization: `Bearer ${secret}` }
    const outgoing = request(url, { method: body === null ? "GET" : "POST", agent: isKept ? agent : false, headers })
    const timer = setTimeout(() => outgoing.destroy(new Error("no complete answer in time")), patienceMillis)
    const settle = (fault: string | null) => {
      clearTimeout(timer)
      resolve(fault)
    }
    outgoing.once("error", (cause) => settle(cause.message))
    outgoing.once("response", (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        text += chunk
      })
      response.on("error", (cause) => settle(cause.message))
      response.on("close", () =>
        settle(response.complete && isComplete(response.statusCode, text) ? null : `${response.statusCode ?? "no"} status: ${text.slice(0, 200)}`)
      )
    })
    outgoing.end(body ?? undefined)
  })

const long = "word ".repeat(128 * 205)

const exchangeOf = (kind: Kind, index: number, { addresses, idleUrl, model, secret }: Measurement): Exchange => {
  const address = addresses[index % addresses.length] ?? ""
  const isKept = index % 4 !== 0
  if (kind === "health")
    return { url: `${address}/${index % 2 === 0 ? "healthz" : "readyz"}`, body: null, secret, isKept, isComplete: (status) => status === 200 }
  if (kind === "idle") return { url: `${idleUrl}/health`, body: null, secret, isKept, isComplete: (status) => status === 200 }
  const content = kind === "large" ? long : "Say something."
  const body = JSON.stringify({ model, messages: [{ role: "user", content }], ...(kind === "streamed" ? { stream: true } : {}) })
  const isComplete = (status: number | undefined, text: string) => status === 200 && (kind !== "streamed" || text.endsWith(dataFrame(streamEnd)))
  return { url: `${address}/v1/chat/completions`, body, secret, isKept, isComplete }
}

const latencies = (millis: ReadonlyArray<number>) => {
  const sorted = [...millis].sort((left, right) => left - right)
  const quantile = (part: number) => Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) * 10) / 10
  return { count: sorted.length, p50: quantile(0.5), p99: quantile(0.99) }
}

const kindOf = (index: number): Kind => (index % 10 === 9 ? "large" : index % 2 === 0 ? "whole" : "streamed")

/** Starts at planned times, whether or not the answers before came: a server that stalls is measured for as long as it stalls. */
const measure = async (measurement: Measurement): Promise<HonestReport> => {
  const from = performance.now()
  const byKind: Record<Kind, Array<number>> = { whole: [], streamed: [], large: [], health: [], idle: [] }
  const errors: Array<string> = []
  const play = async (kind: Kind, index: number, start: number) => {
    await sleep(Math.max(1, from + start - performance.now()))
    const fault = await exchange(exchangeOf(kind, index, measurement))
    if (fault !== null) errors.push(`${kind}: ${fault}`)
    byKind[kind].push(performance.now() - from - start)
  }
  const plans: Array<Promise<void>> = []
  const schedule = (gap: number, kindAt: (index: number) => Kind) => {
    for (let index = 0; index * gap < measurement.millis; index++) plans.push(play(kindAt(index), index, index * gap))
  }
  schedule(1_000 / measurement.perSecond, kindOf)
  schedule(100, () => "health")
  schedule(100, () => "idle")
  await Promise.all(plans)
  const { health, idle, large, streamed, whole } = byKind
  return {
    requests: latencies([...whole, ...streamed, ...large]),
    whole: latencies(whole),
    streamed: latencies(streamed),
    large: latencies(large),
    health: latencies(health),
    idle: latencies(idle),
    errors
  }
}

process.stdout.write("ready\n")
for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${JSON.stringify(await measure(decode(line)))}\n`)
process.exit(0)
