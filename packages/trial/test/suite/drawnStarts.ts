import { dataFrame } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { drawer } from "../../src/promptTokens.ts"
import type { ListedToken } from "../../src/suite/draws/firstWords.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { subjectAt } from "./subject.ts"

/** Settings that shape the first token. */
export interface Shape {
  readonly temperature: number
  readonly top_p: number
  readonly top_k: number
}

/** Shares of the first tokens of four models. Unlisted tokens share the rest. */
export const models = {
  uncertain: { The: 0.3, A: 0.2, " The": 0.02, It: 0.12, In: 0.08, There: 0.05, Once: 0.04, One: 0.03, This: 0.03, My: 0.02, "": 0.02 },
  sure: { he: 0.84, ra: 0.066, c: 0.02, U: 0.015, her: 0.008, F: 0.006, g: 0.0057, hi: 0.0051, ri: 0.0033, ed: 0.0031, el: 0.0028, "\n": 0.0025 },
  even: Object.fromEntries(Array.from({ length: 20 }, (_, at) => [String.fromCharCode(97 + at), 0.03 * 1.04 ** -at])),
  certain: { Yes: 1 - 1e-7, No: 1e-8 }
} satisfies Record<string, Readonly<Record<string, number>>>
export type ModelName = keyof typeof models

/** Number of further tokens, which no engine lists. */
const unlisted = 2_000

/** All tokens of a model, likeliest first. */
export const tokensOf = (name: ModelName): ReadonlyArray<ListedToken> => {
  const known = Object.entries<number>(models[name])
  const rest = Math.max(1e-9, 1 - known.reduce((sum, [, share]) => sum + share, 0)) / unlisted
  return [
    ...known.map(([text, share]) => ({ text, logprob: Math.log(share) })),
    ...Array.from({ length: unlisted }, (_, at) => ({ text: `other${at}x`, logprob: Math.log(rest) }))
  ].toSorted((a, b) => b.logprob - a.logprob)
}

/** How a right engine draws tokens: texts without blanks around them. */
export const drawFrom = (tokens: ReadonlyArray<ListedToken>, { temperature, top_k, top_p }: Shape, unit: () => number): (() => string) => {
  const highest = tokens[0]?.logprob ?? 0
  const left = tokens.slice(0, temperature === 0 ? 1 : top_k > 0 ? top_k : undefined).map(({ logprob }) => Math.exp((logprob - highest) / (temperature || 1)))
  const total = left.reduce((sum, weight) => sum + weight, 0)
  const sums: Array<number> = []
  for (const weight of left) {
    if ((sums.at(-1) ?? 0) >= top_p * total) break
    sums.push((sums.at(-1) ?? 0) + weight)
  }
  return () => {
    const at = unit() * (sums.at(-1) ?? 0)
    let [low, high] = [0, sums.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] ?? 0) > at) high = middle
      else low = middle + 1
    }
    return tokens[low]?.text ?? ""
  }
}

/** What an engine does wrongly, or in its own way. */
export interface Drawn {
  readonly model?: ModelName
  readonly seed?: number
  /** Changes the settings of a request. */
  readonly shaped?: (shape: Shape, path: string, streamed: boolean) => Shape
  /** Number of tokens by which the limit of `/v1/responses` is lower. */
  readonly fewer?: number
  /** Tokens that other paths add to the prompt. */
  readonly added?: number
  /** The answers of other paths that lack their first token. */
  readonly hides?: "streamed" | "both"
  /** How many nats less likely the likeliest token is listed when the prompt is read the first time. */
  readonly cached?: number
  /** Whether the prompt is different each time. */
  readonly changes?: boolean
}

const optional = Schema.optionalKey
const Asked = Schema.fromJsonString(
  Schema.Struct({
    prompt: optional(Schema.Array(Schema.Int)),
    max_output_tokens: optional(Schema.Int),
    stream: optional(Schema.Boolean),
    temperature: Schema.Finite,
    top_p: Schema.Finite,
    top_k: Schema.Int
  })
)

const promptLength = 20
const firstId = 100

const answersOn = {
  "/v1/responses": (text: string, usage: object) => {
    const response = { status: "incomplete", output: [{ type: "message", content: [{ text }] }], usage }
    return {
      whole: response,
      events: [
        { type: "response.output_text.delta", delta: text },
        { type: "response.incomplete", response }
      ]
    }
  },
  "/v1/messages": (text: string, usage: object) => ({
    whole: { content: [{ type: "text", text }], stop_reason: "max_tokens", usage },
    events: [{ type: "message_start", message: { usage } }, { type: "content_block_delta", delta: { text } }, { type: "message_stop" }]
  })
}
const isPath = (path: string): path is keyof typeof answersOn => Object.hasOwn(answersOn, path)

/** A subject whose engine draws first tokens exactly as its settings say, but for what it does wrongly. */
export const drawingSubject = Effect.fnUntraced(function* ({
  added = 0,
  cached = 0,
  changes = false,
  fewer = 0,
  hides,
  model = "uncertain",
  seed = 1,
  shaped
}: Drawn) {
  const tokens = tokensOf(model)
  const draw = drawer(seed)
  const unit = () => draw(2 ** 30) / 2 ** 30
  const bodies = new Set<string>()
  let requests = 0
  const promptIds = () => Array.from({ length: promptLength }, (_, at) => (changes && at === 0 ? 1_000 + requests : at))
  const makers = new Map<string, () => string>()
  const drawn = (shape: Shape) => {
    const key = JSON.stringify(shape)
    const maker = makers.get(key) ?? drawFrom(tokens, shape, unit)
    makers.set(key, maker)
    return maker()
  }
  const usage = { prompt_tokens: promptLength, completion_tokens: 1, total_tokens: promptLength + 1 }
  const reply = (path: string, text: string) => {
    requests++
    const { max_output_tokens = 1 + fewer, prompt, stream = false, temperature, top_k, top_p } = Schema.decodeUnknownSync(Asked)(text)
    if (prompt !== undefined) {
      const id = prompt.at(-1) ?? 0
      const prompt_logprobs = prompt.map((each, at) =>
        at === 0 ? null : { [String(each)]: { logprob: at < promptLength ? -1 : (tokens[id - firstId]?.logprob ?? -99) } }
      )
      return JSON.stringify({ choices: [{ text: "" }], usage, prompt_logprobs })
    }
    if (!isPath(path)) {
      const isFirst = !bodies.has(text)
      bodies.add(text)
      const top_logprobs = tokens.slice(0, 20).map(({ logprob, text: token }, at) => ({ token, logprob: isFirst && at === 0 ? logprob - cached : logprob }))
      return JSON.stringify({
        choices: [{ message: { content: "" }, logprobs: { content: [{ token: tokens[0]?.text, top_logprobs }] } }],
        usage,
        prompt_token_ids: promptIds()
      })
    }
    if (path === "/v1/responses" && max_output_tokens <= fewer) return null
    const shape = { temperature, top_p, top_k }
    const isHidden = hides === "both" || (hides === "streamed" && stream)
    const first = isHidden ? "" : drawn(temperature === 0 ? shape : (shaped?.(shape, path, stream) ?? shape))
    const output_tokens = path === "/v1/responses" ? max_output_tokens - fewer : 1
    const { events, whole } = answersOn[path](first, { input_tokens: promptLength + added, output_tokens, total_tokens: promptLength + added + output_tokens })
    return stream ? events.map((event) => dataFrame(event)).join("") : JSON.stringify(whole)
  }
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const post = (path: string, body: string) =>
    Effect.sync(() => {
      const text = reply(path, body)
      return text === null ? { status: 400, text: "" } : { status: 200, text }
    })
  const idOf = (spelled: string) => tokens.findIndex(({ text }) => text.replace(" ", "Ġ") === spelled)
  const tokenizer: SuiteSubject["repository"]["tokenizer"] = {
    vocabulary: 1_000,
    added: [],
    special: [],
    encode: (texts) => Effect.succeed(texts.map(() => [])),
    decode: (ids) => Effect.succeed(ids.map(() => "")),
    find: (spelled) => Effect.succeed(spelled.map((text) => (idOf(text) < 0 ? null : firstId + idOf(text))))
  }
  const fields = ["temperature", "top_p", "top_k"]
  const capabilities = {
    ...subject.capabilities,
    supported_endpoints: ["/v1/responses" as const, "/v1/messages" as const],
    supported_parameters_by_endpoint: { "/v1/responses": fields, "/v1/messages": fields }
  }
  return { ...subject, slots: 64, capabilities, client: { ...subject.client, post }, repository: { ...subject.repository, tokenizer } }
})
