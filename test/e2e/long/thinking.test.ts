import Anthropic from "@anthropic-ai/sdk"
import { assert, it } from "@effect/vitest"
import { CatalogModel, optionalNullable, RequestRecord, streamEvents } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import OpenAI from "openai"
import { bodyOf, makeCaller } from "../Caller.ts"
import { openCluster, shortenBenchmark } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"

const question = "What is the capital of France?"
const expectedText = "The capital of France is Paris."
const thought = "I know this: Paris."

const optionalText = optionalNullable(Schema.String)
const Message = Schema.Struct({ content: optionalText, reasoning: optionalText, reasoning_content: optionalText })
const Usage = Schema.Struct({
  completion_tokens: Schema.Int,
  completion_tokens_details: optionalNullable(Schema.Struct({ reasoning_tokens: Schema.Int }))
})
const Whole = Schema.Struct({ choices: Schema.Tuple([Schema.Struct({ message: Message })]), usage: Usage })
const Chunk = Schema.Struct({ choices: Schema.Array(Schema.Struct({ delta: Message })), usage: optionalNullable(Usage) })
const Derived = Schema.Struct({ kind: Schema.Literal("derived"), serving: Schema.Json })
const Models = Schema.Struct({ data: Schema.Array(CatalogModel) })

/** One answer: the reasoning and the text, without the white space between them, and the number of tokens. */
interface ReasoningAnswer {
  readonly thought: string
  readonly text: string
  readonly tokens: number
  /** Null if the dialect does not report it. */
  readonly thoughtTokens: number | null
}

it.live(
  "a reasoning model passes its trial with all capabilities, and its reasoning is separate on every path and runtime",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const { state } = yield* startSystem(folder, { SEATRIAL_DURABLE: "false" })
      const caller = makeCaller(state.address, state.api_key)
      const openai = new OpenAI({ baseURL: `${state.address}/v1`, apiKey: state.api_key, maxRetries: 0 })
      const anthropic = new Anthropic({ baseURL: state.address, authToken: state.api_key, maxRetries: 0 })
      const kube = yield* openCluster(state.kubeconfig)
      yield* shortenBenchmark(kube)
      yield* shortenBenchmark(kube, "sim-large")

      const chat = (body: object) =>
        caller.call("POST", "/v1/chat/completions", { max_tokens: 60, temperature: 0, messages: [{ role: "user", content: question }], ...body })
      const both = ({ reasoning, reasoning_content }: typeof Message.Type): string => {
        assert.strictEqual(reasoning ?? "", reasoning_content ?? "")
        return reasoning ?? ""
      }
      const chatWhole = (body: object) =>
        Effect.map(chat(body), (answer): ReasoningAnswer => {
          const { choices, usage } = bodyOf(Whole, answer)
          const [{ message }] = choices
          return {
            thought: both(message).trim(),
            text: (message.content ?? "").trim(),
            tokens: usage.completion_tokens,
            thoughtTokens: usage.completion_tokens_details?.reasoning_tokens ?? 0
          }
        })
      const chatStreamed = (body: object) =>
        Effect.map(chat({ ...body, stream: true, stream_options: { include_usage: true } }), ({ text }): ReasoningAnswer => {
          const chunks = streamEvents(text).map((data) => Schema.decodeUnknownSync(Schema.fromJsonString(Chunk))(data))
          const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
          const usage = chunks.at(-1)?.usage
          return {
            thought: deltas.map(both).join("").trim(),
            text: deltas
              .map(({ content }) => content ?? "")
              .join("")
              .trim(),
            tokens: usage?.completion_tokens ?? 0,
            thoughtTokens: usage?.completion_tokens_details?.reasoning_tokens ?? 0
          }
        })
      const response = (model: string, thinks: boolean, streamed: boolean) =>
        Effect.promise(async (): Promise<ReasoningAnswer> => {
          const input = { model, input: question, temperature: 0, max_output_tokens: 60, ...(thinks ? {} : { reasoning: { effort: "none" as const } }) }
          const { output, output_text, usage } = await (streamed ? openai.responses.stream(input).finalResponse() : openai.responses.create(input))
          const thoughts = output.flatMap((item) => (item.type === "reasoning" ? (item.content ?? []).map(({ text }) => text) : []))
          const details = usage?.output_tokens_details
          return {
            thought: thoughts.join("").trim(),
            text: output_text.trim(),
            tokens: usage?.output_tokens ?? 0,
            thoughtTokens: details?.reasoning_tokens ?? 0
          }
        })
      const message = (model: string, thinks: boolean, streamed: boolean) =>
        Effect.promise(async (): Promise<ReasoningAnswer> => {
          const messages = [{ role: "user" as const, content: question }]
          const input = { model, messages, temperature: 0, max_tokens: 60, ...(thinks ? {} : { thinking: { type: "disabled" as const } }) }
          const { content, usage } = await (streamed ? anthropic.messages.stream(input).finalMessage() : anthropic.messages.create(input))
          const part = (of: (block: (typeof content)[number]) => string) => content.map(of).join("").trim()
          return {
            thought: part((block) => (block.type === "thinking" ? block.thinking : "")),
            text: part((block) => (block.type === "text" ? block.text : "")),
            tokens: usage.output_tokens,
            thoughtTokens: null
          }
        })

      for (const [name, runtime, host_class] of [
        ["tiny-thinker", "reference", "sim-small"],
        ["tiny-thinker", "vllm", "sim-large"],
        ["tiny-thinker", "sglang", "sim-large"],
        ["tiny-thinker-always", "reference", "sim-small"]
      ] as const) {
        const source = { kind: "model_hub", repo: `seatrial/${name}` }
        const deployInput = { source, serving: { runtime, host_class, max_context: 512 } }
        const previewed = yield* eventually("a preview", caller.call("POST", "/v1/deployment-previews", deployInput), ({ status }) => status === 200)
        const { serving } = bodyOf(Derived, previewed)
        const ended = yield* caller.finished((yield* caller.deploy({ source, serving, model_name: `${name}-${runtime}` })).id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        const toggle = name === "tiny-thinker"
        const { data } = yield* caller.read("/v1/models", Models)
        const listed = data.find(({ id }) => id === ended.model)
        assert.deepInclude(listed, { supports_reasoning: true, supports_tool_calls: true, supports_json_mode: true, supports_structured_output: true })
        assert.deepInclude(listed?.tool_calling, { parallel_calls: true, tool_results: true })
        assert.strictEqual(listed?.reasoning_controls.thinking_toggle, toggle)

        const { model } = ended
        for (const thinks of toggle ? [true, false] : [true]) {
          const off = thinks ? {} : { reasoning_effort: "none" }
          const answers = [
            yield* chatWhole({ model, ...off }),
            yield* chatStreamed({ model, ...off }),
            yield* response(model, thinks, false),
            yield* response(model, thinks, true),
            yield* message(model, thinks, false),
            yield* message(model, thinks, true)
          ]
          const what = `${name} by ${runtime}, ${thinks ? "thinking" : "told not to"}: ${JSON.stringify(answers)}`
          for (const answer of answers) {
            assert.deepStrictEqual([answer.thought, answer.text, answer.tokens], [thinks ? thought : "", expectedText, answers[0]?.tokens], what)
            if (answer.thoughtTokens === null) continue
            if (thinks) assert.isTrue(answer.thoughtTokens > 5 && answer.thoughtTokens < answer.tokens, what)
            else assert.strictEqual(answer.thoughtTokens, 0, what)
          }
        }
        // Reasoning tokens are counted and charged.
        const answer = yield* chat({ model })
        const id = answer.headers.get("x-request-id")
        const record = yield* eventually(
          "the record",
          caller.call("GET", `/v1/requests/${id}`),
          ({ status, text }) => status === 200 && !text.includes('"running"')
        )
        assert.strictEqual(bodyOf(RequestRecord, record).output_tokens, bodyOf(Whole, answer).usage.completion_tokens)
      }
    }).pipe(Effect.scoped),
  900_000
)
