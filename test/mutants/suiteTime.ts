import { createServer, request } from "node:http"
import { makeEngineClient, runSuite, type SuiteSubject, suiteChecks } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { listenLocally } from "../../packages/trial/test/listenLocally.ts"
import { type Served, serveSample } from "./serveSample.ts"
import { sampleSubject } from "./trySample.ts"

// `node test/mutants/suiteTime.ts TPOT_MS PREFILL_TOKENS_PER_S [CONTEXT]` prints how long the suite takes on an engine of that speed, check by check. It runs the
// suite with the prompts of a large model on the sample model, and calculates the time of each request from its tokens. The speeds are `tpot_ms` of a benchmark at
// its highest concurrency, and prompt tokens divided by `ttft_ms` at its lowest.
const [tokenMillis = 25, prefillRate = 8_000, context = 131_072] = process.argv.slice(2).map(Number)
const parameters = 70_000_000_000
const sampleContext = 1_024
/** The checks whose longest prompts fill the context. */
const grows: ReadonlySet<string> = new Set(["context_edge", "far_likelihood", "needle"])

interface Request {
  readonly check: string
  /** Real milliseconds, which only show which requests came after which. */
  readonly begunAt: number
  readonly endedAt: number
  readonly promptTokens: number
  /** Tokens of each choice. */
  readonly answerTokens: number
}

const last = (name: string, text: string) => Number([...text.matchAll(new RegExp(`"${name}": ?(\\d+)`, "g"))].at(-1)?.[1] ?? 0)

/** Forwards requests to the engine and records each one. */
const record = (target: string, requests: Array<Request>, checkNow: () => string) =>
  listenLocally(
    createServer((incoming, response) => {
      const [begunAt, check] = [performance.now(), checkNow()]
      const sent: Array<Buffer> = []
      const { headers, method = "GET", url = "/" } = incoming
      const forwarded = request(`${target}${url}`, { method, headers }, (answer) => {
        const parts: Array<Buffer> = []
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.on("data", (part) => parts.push(part))
        answer.on("end", () => {
          const text = Buffer.concat(parts).toString("utf8")
          const promptTokens = Math.max(last("prompt_tokens", text), last("input_tokens", text))
          const answerTokens =
            Math.max(last("completion_tokens", text), last("output_tokens", text)) / Math.max(1, last("n", Buffer.concat(sent).toString("utf8")))
          if (method === "POST") requests.push({ check, begunAt, endedAt: performance.now(), promptTokens, answerTokens })
        })
        answer.pipe(response)
      })
      forwarded.on("error", () => response.destroy())
      response.on("close", () => forwarded.destroy())
      incoming.on("data", (part) => sent.push(part))
      incoming.pipe(forwarded)
    })
  )

const secondsOf = ({ answerTokens, check, promptTokens }: Request): number => {
  const isLong = grows.has(check) && promptTokens > sampleContext / 4
  return (promptTokens * (isLong ? context / sampleContext : 1)) / prefillRate + (answerTokens * tokenMillis) / 1_000
}

/** Seconds of requests of which each begins when those that ended before it have ended. */
const lasts = (requests: ReadonlyArray<Request>): number => {
  const timed: Array<{ readonly endedAt: number; readonly until: number }> = []
  for (const each of requests.toSorted((one, other) => one.begunAt - other.begunAt)) {
    const from = Math.max(0, ...timed.filter(({ endedAt }) => endedAt <= each.begunAt).map(({ until }) => until))
    timed.push({ endedAt: each.endedAt, until: from + secondsOf(each) })
  }
  return Math.max(0, ...timed.map(({ until }) => until))
}

const program = Effect.gen(function* () {
  const engine = yield* serveSample({})
  const requests: Array<Request> = []
  let current = ""
  const served: Served = { ...engine, url: (yield* record(engine.url, requests, () => current)).url }
  const subject = yield* sampleSubject(served, { parameters })
  const client = yield* makeEngineClient({ url: served.url, timeout: "600 seconds", work: subject.metrics.work })
  const { report } = yield* runSuite({ ...subject, client }, (state) =>
    suiteChecks(state, 30).map((check) => ({
      ...check,
      run: (own: SuiteSubject) =>
        Effect.suspend(() => {
          current = check.name
          return check.run(own)
        })
    }))
  )
  const say = (line: string) => process.stdout.write(`${line}\n`)
  const names = [...new Set(requests.map(({ check }) => check))]
  let total = 0
  for (const name of names) {
    const own = requests.filter(({ check }) => check === name)
    const seconds = lasts(own)
    total += seconds
    const tokens = own.reduce((sum, { answerTokens }) => sum + answerTokens, 0)
    say(`${seconds.toFixed(1).padStart(7)} s  ${name}: ${own.length} requests, ${Math.round(tokens)} generated tokens`)
  }
  say(`${total.toFixed(1).padStart(7)} s  in all`)
  for (const { detail, name, passed } of report.checks) if (!passed) say(`failed: ${name}: ${detail ?? ""}`)
}).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

await Effect.runPromise(program)
process.exit(0)
