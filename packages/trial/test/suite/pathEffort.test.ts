import { assert, describe, it } from "@effect/vitest"
import { type InferencePath, withdrawCapabilities } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { pathEffort } from "../../src/suite/pathEffort.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import { subjectAt } from "./subject.ts"

const Effort = Schema.Struct({ effort: Schema.String })
const effortsOf = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ reasoning: Schema.optionalKey(Effort), output_config: Schema.optionalKey(Effort) }))
)

/** How an effort changes the prompt: the text before the question, and the tokens that it adds. */
interface Makes {
  readonly written?: (effort: string) => string
  readonly longer?: (effort: string) => number
  readonly counted?: (effort: string) => number
  readonly caches?: boolean
}

const base = 200
const endpoints: ReadonlyArray<InferencePath> = ["/v1/responses", "/v1/messages", "/v1/messages/count_tokens"]

const tried = Effect.fnUntraced(function* (name: string, { caches = true, counted = () => 0, longer = () => 0, written = (effort) => effort }: Makes) {
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const known = new Set<string>()
  const post: typeof subject.client.post = (path, body) => {
    const { output_config, reasoning } = effortsOf(body)
    const effort = (reasoning ?? output_config)?.effort ?? ""
    if (path === "/v1/messages/count_tokens") return Effect.succeed({ status: 200, text: JSON.stringify({ input_tokens: base + counted(effort) }) })
    // All prompts have the same beginning. A prompt that was sent before is cached completely.
    const cached = known.size === 0 || !caches ? 0 : known.has(written(effort)) ? base - 8 : 16
    known.add(written(effort))
    const input = base + longer(effort)
    const answer =
      path === "/v1/responses"
        ? { status: "incomplete", output: [], usage: { input_tokens: input, output_tokens: 16, input_tokens_details: { cached_tokens: cached } } }
        : { content: [], stop_reason: "max_tokens", usage: { input_tokens: input - cached, output_tokens: 16, cache_read_input_tokens: cached } }
    return Effect.succeed({ status: 200, text: JSON.stringify(answer) })
  }
  const capabilities = {
    ...subject.capabilities,
    supports_reasoning: true,
    supported_endpoints: endpoints,
    supported_parameters_by_endpoint: {
      "/v1/responses": ["reasoning"],
      "/v1/messages": ["output_config", "messages"],
      "/v1/messages/count_tokens": ["output_config"]
    },
    supported_response_formats_by_endpoint: { "/v1/messages": ["json_schema"] },
    reasoning_controls: { thinking_toggle: false, effort_values: ["low", "medium", "high"], token_budget: false }
  }
  const { report } = yield* runSuite({ ...subject, capabilities, client: { ...subject.client, post } }, () => pathEffort.filter((row) => row.name === name))
  const left = withdrawCapabilities(capabilities, report.withdrawn ?? [])
  return [report.checks[0]?.detail, Object.values(left.supported_parameters_by_endpoint).flat().join(), left.supported_response_formats_by_endpoint] as const
}, Effect.provide(FetchHttpClient.layer))

const all = "reasoning,output_config,messages,output_config"
const unchanged = "one of 3 efforts does not change the prompt"

describe("efforts on other paths than the chat route", () => {
  const cases: ReadonlyArray<readonly [why: string, makes: Makes, detail: string | null]> = [
    ["differ by the cached part of a prompt", {}, null],
    ["differ by the length of a prompt", { caches: false, longer: ({ length }) => length, counted: ({ length }) => length }, null],
    ["are withdrawn if they are ignored", { written: () => "" }, unchanged],
    ["are withdrawn if two of them are the same", { written: (effort) => (effort === "high" ? "medium" : effort) }, unchanged],
    ["are withdrawn if nothing distinguishes the prompts", { caches: false }, unchanged]
  ]
  for (const [why, makes, detail] of cases) {
    it.effect(why, () =>
      Effect.gen(function* () {
        const [responses, onResponses] = yield* tried("responses_effort", makes)
        assert.deepStrictEqual(
          [responses, onResponses],
          detail === null ? ["3 efforts", all] : [`reasoning: ${detail}`, "output_config,messages,output_config"]
        )
        const [messages, onMessages, formats] = yield* tried("messages_effort", makes)
        assert.deepStrictEqual([messages, onMessages], detail === null ? ["3 efforts", all] : [`output_config: ${detail}`, "reasoning,messages"])
        // Formats use the same field, so they are withdrawn too.
        assert.deepStrictEqual(formats, { "/v1/messages": detail === null ? ["json_schema"] : [] })
      })
    )
  }

  it.effect("of a message are counted by count_tokens too", () =>
    Effect.gen(function* () {
      const [detail, left] = yield* tried("messages_effort", { longer: ({ length }) => length })
      assert.deepStrictEqual([detail, left], ["count_tokens gives 200 tokens for a message of 203 with an effort", "reasoning,messages"])
    })
  )
})
