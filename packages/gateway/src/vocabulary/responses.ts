import { advisory, anyMembers, boolean, type Check, integer, list, members, never, number, numberAbove, only, text, variant } from "./Check.ts"
import { metadata } from "./chat.ts"
import { fillSamplingDefaults } from "./fillSamplingDefaults.ts"
import { jsonSchema } from "./jsonSchema.ts"
import { limitTokens } from "./maxTokens.ts"
import { isMembers } from "./parseBody.ts"
import { reasoningEffort, responseReasoningTogether } from "./reasoning.ts"
import type { Vocabulary } from "./requestFields.ts"
import { responsesInput } from "./responsesInput.ts"
import { tokenLimit } from "./sampling.ts"
import { functionName, parallelToolCalls, toolForms } from "./tools.ts"

const logprobs = "message.output_text.logprobs"

const { toolChoice, tools, toolsTogether } = toolForms(null)

const formats: Readonly<Record<string, Check>> = {
  text: (value, at) => {
    members({ type: text })(value, at)
    return undefined
  },
  json_object: members({ type: text }),
  json_schema: members({ type: text, name: functionName, description: text, schema: jsonSchema, strict: boolean }, ["name", "schema"])
}
const format: Check = (value, at) => {
  const checked = variant("type", formats)(value, at)
  if (isMembers(checked) && typeof checked.type === "string" && !at.formats.has(checked.type)) {
    return at.unsupportedValue(`the model supports ${[...at.formats].join(", ")}`, "type")
  }
  return checked
}
const form = members({ format, verbosity: only("medium") })

const reasoning = members({ effort: reasoningEffort, summary: advisory(text), generate_summary: advisory(text), context: never, mode: never })

/** Clients that store nothing request encrypted reasoning. It is accepted, although there is none. */
const include: Check = (value, at) => {
  const included = list(text, 0, 16)(value, at)
  for (const [index, one] of Array.isArray(included) ? included.entries() : []) {
    if (one !== logprobs && one !== "reasoning.encrypted_content") return at.unsupportedValue("the model does not support it", index)
  }
  return Array.isArray(included) && included.includes(logprobs) ? [logprobs] : undefined
}

const isEmptyObject = (checked: unknown) => isMembers(checked) && Object.keys(checked).length === 0

/** `/v1/responses`. Nothing is stored. */
export const responses: Vocabulary<"/v1/responses"> = {
  fields: {
    model: text,
    input: responsesInput,
    instructions: text,
    max_output_tokens: tokenLimit,
    stream: boolean,
    stream_options: advisory(members({ include_obfuscation: boolean })),
    temperature: number(0, 2),
    top_p: numberAbove(0, 1),
    top_logprobs: integer(0, 20),
    include,
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: parallelToolCalls,
    text: form,
    reasoning,
    truncation: only("disabled"),
    background: only(false),
    store: only(false),
    metadata,
    user: advisory(text),
    safety_identifier: advisory(text),
    prompt_cache_key: text,
    prompt_cache_retention: advisory(text),
    prompt_cache_options: advisory(anyMembers),
    service_tier: only("auto", "default")
  },
  required: ["input"],
  never: ["previous_response_id", "conversation", "prompt", "context_management", "max_tool_calls", "moderation", "access_programs", "image"],
  together: (body, at) => {
    limitTokens(body, at, "max_output_tokens", "omit")
    if (body.top_logprobs !== undefined && body.include === undefined) at.invalid(`requires \`include: ["${logprobs}"]\``, "top_logprobs")
    if (body.include !== undefined && body.stream === true && !at.target.wire.streamsResponseLogprobs) {
      at.unsupportedValue("the model does not stream log-probabilities", "include")
    }
    toolsTogether(body, at)
    for (const name of ["text", "reasoning"]) if (isEmptyObject(body[name])) delete body[name]
    responseReasoningTogether(body, at)
    fillSamplingDefaults(body, at.target)
    if (at.target.wire.overridesSamplingDefaults) {
      body.temperature ??= 1
      body.top_p ??= 1
    }
  }
}
