import { createServer, request } from "node:http"
import { makeEngineClient, runSuite, type SuiteSubject, suiteChecks, thresholds } from "@seatrial/trial"
import { Effect } from "effect"
import { listenLocally } from "../../packages/trial/test/listenLocally.ts"
import { type Served, serveSample } from "./serveSample.ts"
import { sampleSubject } from "./trySample.ts"

const parameters = 70_000_000_000
const sampleContext = 1_024

/** The speed of an engine, as a benchmark measures it. */
export interface EngineSpeed {
  /** `tpot_ms` at the highest concurrency. */
  readonly tokenMillis: number
  /** Prompt tokens divided by `ttft_ms`, at the lowest concurrency. */
  readonly promptTokensPerSecond: number
  readonly context: number
}

/** A request of the suite, and its number of tokens. */
interface RecordedRequest {
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
const forwardAndRecord = (target: string, requests: Array<RecordedRequest>, checkNow: () => string) =>
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

/** The check whose time depends on the size of the KV cache. It is not recorded, and gets its time limit. */
const pressure = "kv_pressure"

/** Runs the suite with the prompts of a model with 70 billion parameters on the sample model. Succeeds with its requests. */
export const recordSuite = Effect.fnUntraced(function* () {
  const engine = yield* serveSample({})
  const requests: Array<RecordedRequest> = []
  let current = ""
  const served: Served = { ...engine, url: (yield* forwardAndRecord(engine.url, requests, () => current)).url }
  const subject = yield* sampleSubject(served, { parameters })
  const client = yield* makeEngineClient({ url: served.url, timeout: "600 seconds", work: subject.metrics.work })
  const { report } = yield* runSuite({ ...subject, client }, (state) =>
    suiteChecks(state)
      .filter(({ name }) => name !== pressure)
      .map((check) => ({
        ...check,
        run: (own: SuiteSubject) =>
          Effect.suspend(() => {
            current = check.name
            return check.run(own)
          })
      }))
  )
  return { report, requests }
})

/** Tokens of the longest prompts of checks that fill the context. */
const longestPrompt = (check: string, { context }: EngineSpeed): number => {
  if (check === "decode_matches_prefill") return Math.min(context, thresholds.longPrompt)
  return ["context_edge", "far_likelihood", "needle"].includes(check) ? context : sampleContext
}

const secondsOf = ({ answerTokens, check, promptTokens }: RecordedRequest, speed: EngineSpeed): number => {
  const longer = promptTokens > sampleContext / 4 ? longestPrompt(check, speed) / sampleContext : 1
  return (promptTokens * longer) / speed.promptTokensPerSecond + (answerTokens * speed.tokenMillis) / 1_000
}

/** Seconds of requests of which each begins when those that ended before it have ended. */
const secondsOfAll = (requests: ReadonlyArray<RecordedRequest>, speed: EngineSpeed): number => {
  const timed: Array<{ readonly endedAt: number; readonly until: number }> = []
  for (const each of requests.toSorted((one, other) => one.begunAt - other.begunAt)) {
    const from = Math.max(0, ...timed.filter(({ endedAt }) => endedAt <= each.begunAt).map(({ until }) => until))
    timed.push({ endedAt: each.endedAt, until: from + secondsOf(each, speed) })
  }
  return Math.max(0, ...timed.map(({ until }) => until))
}

/** The factor by which the time limits of the suite grow. */
const stretchOf = ({ tokenMillis }: EngineSpeed): number => Math.min(thresholds.mostStretch, Math.max(1, tokenMillis / thresholds.usualTokenMillis))

/** Seconds after which only required checks start. */
export const budgetOf = (speed: EngineSpeed): number => thresholds.budgetSeconds * stretchOf(speed)

/** The calculated seconds of each check on an engine of this speed. */
export const secondsByCheck = (requests: ReadonlyArray<RecordedRequest>, speed: EngineSpeed): ReadonlyMap<string, number> => {
  const recorded = Map.groupBy(requests, ({ check }) => check)
  const seconds = [...recorded].map(([check, own]): readonly [string, number] => [check, secondsOfAll(own, speed)])
  return new Map([...seconds, [pressure, thresholds.pressureSeconds * stretchOf(speed)]])
}
