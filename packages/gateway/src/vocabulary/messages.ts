import { threadUnsupported } from "../refusals.ts"
import { anthropicMessages, cacheControl, system } from "./anthropicBlocks.ts"
import { anthropicChoice, anthropicTools, anthropicToolsTogether } from "./anthropicTools.ts"
import { advisory, anyMembers, boolean, type Check, integer, list, nonEmptyText, number, numberAbove, only, text } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { fillSamplingDefaults, inMessages } from "./fillSamplingDefaults.ts"
import { limitTokens } from "./maxTokens.ts"
import { isMembers } from "./parseBody.ts"
import type { Vocabulary } from "./requestFields.ts"
import { tokenLimit } from "./sampling.ts"
import { outputConfig, thinking, thinkingTogether } from "./thinking.ts"

/** The gateway keeps no thinking of earlier turns, so clearing it needs no work. */
const contextManagement: Check = (value, at) => {
  if (!isMembers(value)) return at.invalid("expected an object")
  for (const name of Object.keys(value)) if (name !== "edits") return at.unknown(name)
  const edits = value.edits ?? []
  if (!Array.isArray(edits)) return at.invalid("expected a list", "edits")
  for (const [index, edit] of edits.entries()) {
    if (!isMembers(edit) || typeof edit.type !== "string" || !edit.type.startsWith("clear_thinking_")) {
      return at.unsupportedValue("only thinking can be cleared", "edits", index, "type")
    }
  }
  return undefined
}

const stops = list(nonEmptyText, 0, 4)

const conversation = {
  model: text,
  messages: anthropicMessages,
  system,
  tools: anthropicTools,
  tool_choice: anthropicChoice,
  thinking,
  output_config: outputConfig,
  cache_control: cacheControl,
  context_management: contextManagement,
  speed: only("standard")
}

const never = [
  "container",
  "mcp_servers",
  "inference_geo",
  "workspace_id",
  "user_profile_id",
  "diagnostics",
  "fallbacks",
  "fallback_credit_token",
  "billing_policy",
  "compaction"
]

const together = (body: Record<string, unknown>, at: Checking): void => {
  anthropicToolsTogether(body, at)
  thinkingTogether(body, at)
}

/** `/v1/messages`. */
export const messages: Vocabulary<"/v1/messages"> = {
  fields: {
    ...conversation,
    max_tokens: tokenLimit,
    stop_sequences: (value, at) => (Array.isArray(value) && value.length === 0 ? undefined : stops(value, at)),
    stream: boolean,
    temperature: number(0, 1),
    top_p: numberAbove(0, 1),
    top_k: (value, at) => (integer(0, 1_000_000)(value, at) === 0 ? -1 : value),
    metadata: advisory(anyMembers),
    service_tier: only("auto", "standard_only")
  },
  required: ["messages", "max_tokens"],
  never,
  refused: new Map([["thread", threadUnsupported]]),
  together: (body, at) => {
    together(body, at)
    limitTokens(body, at, "max_tokens", "cut")
    fillSamplingDefaults(body, at.target, inMessages)
  }
}

/** `/v1/messages/count_tokens`. */
export const countTokens: Vocabulary<"/v1/messages/count_tokens"> = { fields: conversation, required: ["messages"], never, together }
