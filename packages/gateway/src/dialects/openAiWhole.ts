import { Option, Schema } from "effect"
import type { WholeAnswer } from "./Dialect.ts"
import { finishReasonOf } from "./finishReason.ts"
import { classesOf, EngineUsage } from "./openAiUsage.ts"
import { withBothNames } from "./reasoningNames.ts"

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      usage: Schema.optionalKey(Schema.NullOr(EngineUsage)),
      choices: Schema.Array(Schema.Struct({ finish_reason: Schema.NullOr(Schema.String) })).check(Schema.isMinLength(1))
    })
  )
)

/** Reads a whole chat or completion. One choice that was not finished spoils all. */
export const openAiWhole = (text: string): WholeAnswer | null => {
  const answer = Option.getOrNull(decode(text))
  if (answer === null) return null
  const reasons = answer.choices.map(({ finish_reason }) => (finish_reason === null ? null : finishReasonOf(finish_reason)))
  const closed = answer.choices.some(({ finish_reason }) => finish_reason === "repetition")
    ? text.replaceAll(/"finish_reason":\s*"repetition"/g, '"finish_reason":"stop"')
    : text
  return {
    usage: answer.usage == null ? null : classesOf(answer.usage),
    finished: !reasons.includes(null),
    finishReason: reasons.includes(null) ? null : (reasons[0] ?? null),
    body: withBothNames(closed)
  }
}
