import { assert, it } from "@effect/vitest"
import { Commit, modelCapabilities, type Runtime } from "@seatrial/domain"
import { Schema } from "effect"
import { engineFor } from "../src/index.ts"

const commit = Schema.decodeSync(Commit)("c".repeat(40))
const marks = {
  hermes: "<tool_call>",
  granite: "<|tool_call|>",
  mistral: "[TOOL_CALLS]",
  glm45: "<arg_key>",
  lfm2: "<|tool_call_start|>",
  qwen3_coder: "<tool_call><function=f>"
}

it("a strict tool is accepted only if the engine's parser for the model's format has a grammar", () => {
  const strict = (runtime: Runtime) =>
    Object.fromEntries(
      Object.entries(marks).map(([format, mark]) => {
        const { supports_tool_calls, tool_calling } = modelCapabilities(engineFor(runtime)?.served ?? assert.fail(), {
          chat_template: `{% if tools %}${mark}{% endif %}`,
          commit
        })
        return [format, supports_tool_calls ? tool_calling.strict_arguments : null]
      })
    )
  // Null: the engine does not parse this format.
  assert.deepStrictEqual(strict("vllm"), { hermes: true, granite: false, mistral: false, glm45: true, lfm2: false, qwen3_coder: true })
  assert.deepStrictEqual(strict("sglang"), { hermes: true, granite: null, mistral: true, glm45: false, lfm2: false, qwen3_coder: true })
  assert.deepStrictEqual(strict("reference"), { hermes: true, granite: null, mistral: null, glm45: null, lfm2: null, qwen3_coder: null })
})
