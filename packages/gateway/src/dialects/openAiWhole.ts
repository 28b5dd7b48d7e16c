import type { WholeAnswer } from "./Dialect.ts"
import { finishReasonOf } from "./finishReason.ts"
import { isObject, parseJson } from "./json.ts"
import { classesOf } from "./openAiUsage.ts"
import { withBothNames } from "./reasoningNames.ts"

/** Reads a chat or completion that is not streamed. It is finished only if all its choices are. */
export const openAiWhole = (text: string): WholeAnswer | null => {
  const answer = parseJson(text)
  if (!isObject(answer) || !Array.isArray(answer.choices) || answer.choices.length === 0) return null
  let finished = true
  let finishReason: string | null = null
  let changed = false
  for (const choice of answer.choices) {
    const engineReason: unknown = isObject(choice) ? choice.finish_reason : undefined
    if (engineReason !== null && typeof engineReason !== "string") return null
    const reason = engineReason === null ? null : finishReasonOf(engineReason)
    finished &&= reason !== null
    finishReason ??= reason
    changed ||= reason !== engineReason
  }
  const closed = changed ? text.replaceAll(/"finish_reason":\s*"repetition"/g, '"finish_reason":"stop"') : text
  return { usage: classesOf(answer.usage), finished, finishReason: finished ? finishReason : null, body: withBothNames(closed) }
}
