import { Effect } from "effect"
import { unexpected } from "./Check.ts"
import { repeatCode } from "./codes.ts"
import type { post } from "./pathBodies.ts"
import { converse, mayThink, roomAfterThought, type SuiteSubject, thoughtSeconds, together, withoutThinking } from "./SuiteSubject.ts"

/** Token limit of a cut answer. */
export const cutTo = 4
/** A question of this trial, short enough to be sent often, whose answer is not doubtful. */
export const questionOf = ({ seed }: SuiteSubject): string => repeatCode(seed, "other paths")
export const messagesOf = (subject: SuiteSubject) => [{ role: "user", content: questionOf(subject) }]
const max_tokens = 24
/**
 * The same question on the chat route. The answer of a model without reasoning on another path must equal it. Paths
 * turn reasoning on in different ways.
 */
export const byChat = (subject: SuiteSubject, fields: object = {}) => converse(subject, messagesOf(subject), { max_tokens, ...fields })

/** Fails if an answer has no tokens, or more than its limit. `way`: whole or streamed. */
export const plausibleCounts = (subject: SuiteSubject, way: string, input: number, output: number) =>
  input < 1 || output < 1 || output > roomOf(subject) ? unexpected(`${way}: ${input} + ${output} tokens`) : Effect.void

/** An instruction that a conversation may have in addition to its turns. */
const instruction = "Answer as a captain would, in one short line."
export const tool = {
  name: "get_weather",
  description: "The weather of a town.",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

const earlierTurns = [
  { role: "user", content: "Good morning." },
  { role: "assistant", content: "Good morning. What can I do for you?" }
]

/**
 * A field that adds text to the prompt, its value, and the expected number of input tokens; null if the number only has
 * to grow.
 */
type Saying = readonly [field: string, given: object, input: number | null]

/** A turn with the question and a second block. Empty for models that may reason, to save time. */
export const twoBlocks = (subject: SuiteSubject, turns: "input" | "messages", type: "input_text" | "text"): ReadonlyArray<Saying> => {
  const content = [questionOf(subject), instruction].map((text) => ({ type, text }))
  return mayThink(subject) ? [] : [["content", { [turns]: [{ ...(turns === "input" ? { type: "message" } : {}), role: "user", content }] }, null]]
}

/** Tokens of the conversation with an addition, on the chat route; null if the route refuses it. */
const byChatWith = (subject: SuiteSubject, before: ReadonlyArray<object>, fields: object) =>
  converse(subject, [...before, ...messagesOf(subject)], { max_tokens: 1, ...withoutThinking(subject), ...fields }).pipe(
    Effect.map(({ usage }) => usage.prompt_tokens),
    Effect.catchTag("Unexpected", () => Effect.succeed(null))
  )

/**
 * The fields that add text to the prompt, if the template of the model has a place for it: the number of input tokens
 * must grow.
 */
export const sayingMore = Effect.fnUntraced(function* (
  subject: SuiteSubject,
  names: { readonly system: string; readonly tool: object; readonly turns: string }
) {
  const plain = (yield* byChatWith(subject, [], {})) ?? Number.POSITIVE_INFINITY
  const system = yield* byChatWith(subject, [{ role: "system", content: instruction }], {})
  const { description, name, schema } = tool
  const functions = [{ type: "function", function: { name, description, parameters: schema } }]
  const withTools = subject.capabilities.supports_tool_calls ? yield* byChatWith(subject, [], { tools: functions, tool_choice: "auto" }) : null
  const later = yield* byChatWith(subject, earlierTurns, {})
  const more: ReadonlyArray<Saying> = [
    // Every token of further turns counts. Other paths may format instructions and tools in their own way.
    ...(later !== null && later > plain
      ? [
          [
            names.turns,
            { [names.turns]: [...earlierTurns, ...messagesOf(subject)].map((turn) => ({ ...(names.turns === "input" ? { type: "message" } : {}), ...turn })) },
            mayThink(subject) ? null : later
          ] as const
        ]
      : []),
    ...(system !== null && system > plain ? [[names.system, { [names.system]: instruction }, null] as const] : []),
    ...(withTools !== null && withTools > plain ? [["tools", { tools: [names.tool] }, null] as const] : [])
  ]
  return more
})

export const eachSaying = (subject: SuiteSubject, more: ReadonlyArray<Saying>, ask: (fields: object) => ReturnType<typeof post>) =>
  Effect.forEach(more, ([field, fields, input]) => Effect.map(ask(fields), (received) => [field, received, input] as const), together(mayThink(subject)))

/** The fault in the number of input tokens of a longer prompt; null without a fault. */
export const wrongInput = (field: string, input: number | undefined, plain: number, wanted: number | null): string | null => {
  if (input === undefined || input <= plain) return `${field}: the field does not increase the input tokens`
  return wanted !== null && input !== wanted ? `${field}: ${input} input tokens, on the chat route ${wanted}` : null
}

/**
 * A limit that cuts reasoning is obeyed too, if the path reports the tokens of reasoning. Other models were checked
 * before.
 */
export const shortOf = Effect.fnUntraced(function* (
  subject: SuiteSubject,
  received: ReturnType<typeof post>,
  outputOf: (received: string) => number | undefined
) {
  if (!mayThink(subject)) return
  const output = yield* received.pipe(
    Effect.map(outputOf),
    Effect.catchTag("Unexpected", () => Effect.succeed(undefined))
  )
  if (output !== undefined && output > cutTo) return yield* unexpected(`${output} tokens, although the limit is ${cutTo}`)
})

/** Token limit of an answer: not every path can turn reasoning off, so a model that may reason needs more tokens. */
export const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, max_tokens) : max_tokens)
/** Time limit in seconds for whole and streamed answers, and for one answer to each longer prompt. */
export const limitOf = (subject: SuiteSubject): number => 40 + (mayThink(subject) ? thoughtSeconds(5) : 0)
