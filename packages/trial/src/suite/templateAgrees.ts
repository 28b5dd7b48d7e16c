import type { TrialOffers } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import type { Conversing } from "./OwnTemplate.ts"
import { readAnswer } from "./readAnswer.ts"
import type { PinnedTemplate } from "./readPinned.ts"
import { chatPath, type SuiteSubject } from "./SuiteSubject.ts"
import { type Conversation, conversations } from "./texts/conversations.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"

const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ tokens: Schema.Array(Schema.Int) })))

const decodeParts = Schema.decodeUnknownOption(Schema.Array(Schema.Struct({ text: Schema.String })))

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a town.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
  }
}
const call = { id: "call00001", type: "function", function: { name: "get_weather", arguments: '{"city": "Paris"}' } }

interface Variant extends Conversation {
  readonly tools?: ReadonlyArray<object>
  readonly settings?: Readonly<Record<string, unknown>>
}

const variantsOf = ({ capabilities }: SuiteSubject, words: ReadonlyArray<string>): ReadonlyArray<Variant> => [
  ...conversations,
  { name: "words", messages: words.map((word, turn) => ({ role: turn % 2 === 0 ? "user" : "assistant", content: word })) },
  ...(capabilities.supports_tool_calls
    ? [
        { name: "tools", messages: [{ role: "user", content: "What is the weather in Paris?" }], tools: [weather] },
        {
          name: "tool_result",
          messages: [
            { role: "user", content: "What is the weather in Paris?" },
            { role: "assistant", content: "", tool_calls: [call] },
            { role: "tool", tool_call_id: call.id, content: "rain" }
          ],
          tools: [weather]
        }
      ]
    : []),
  ...(capabilities.reasoning_controls.thinking_toggle
    ? [true, false].map((on) => ({
        name: on ? "thinking" : "not_thinking",
        messages: [{ role: "user", content: "Hello" }],
        settings: { enable_thinking: on, thinking: on }
      }))
    : [])
]

const same = (one: ReadonlyArray<number>, other: ReadonlyArray<number>) => one.length === other.length && one.every((id, at) => id === other[at])

/** Parses the arguments of calls: engines do so before they render a template. */
const parsed = (messages: ReadonlyArray<object>): ReadonlyArray<object> =>
  messages.map((message) =>
    "tool_calls" in message ? { ...message, tool_calls: [{ ...call, function: { name: call.function.name, arguments: { city: "Paris" } } }] } : message
  )

/** Joins the parts of a content into one text, as engines do for templates without support for parts. */
const flattened = (messages: ReadonlyArray<object>, between: string): ReadonlyArray<object> =>
  messages.map((message) => {
    if (!("content" in message) || !Array.isArray(message.content)) return message
    const texts = Option.getOrElse(decodeParts(message.content), () => [])
    return { ...message, content: texts.map(({ text }) => text).join(between) }
  })

/** Wraps each text in a content part, except for tool results. */
const wrapped = (messages: ReadonlyArray<object>): ReadonlyArray<object> =>
  messages.map((message) =>
    "content" in message && typeof message.content === "string" && !("tool_call_id" in message)
      ? { ...message, content: [{ type: "text", text: message.content }] }
      : message
  )

/** Milliseconds. */
const day = 86_400_000

/** A prompt of the pinned template as ids; without text if the template refuses the conversation. */
interface Rendered {
  readonly text: string | null
  readonly ids: ReadonlyArray<number> | undefined
}

/** The days that the engine's clock may show: today in UTC, or the day before or after. */
const daysOf = Effect.fnUntraced(function* ({ writesDay }: PinnedTemplate) {
  const now = yield* Clock.currentTimeMillis
  return writesDay ? [now, now - day, now + day] : [now]
})

/**
 * The prompts of a variant. Engines differ in how they pass parts to the template: each variant is rendered in all
 * possible forms.
 */
const formsOf = ({ messages, settings, tools }: Variant, templated: TrialOffers["templated"], days: ReadonlyArray<number>): ReadonlyArray<Conversing> => {
  const { asParts, between, tool } = { asParts: false, between: "\n", tool: {}, ...templated }
  const extra = { ...(tools === undefined ? {} : { tools: tools.map((one) => ({ ...one, ...tool })) }), ...settings }
  const parsedMessages = parsed(messages)
  const forms = [flattened(parsedMessages, between), parsedMessages, ...(asParts ? [wrapped(parsedMessages)] : [])]
  return forms.flatMap((form) => days.map((at) => ({ messages: form, extra, at })))
}

/** The prompts of each variant by the pinned template, as text and as ids of the pinned tokenizer. */
const renderVariants = Effect.fnUntraced(function* (subject: SuiteSubject, template: PinnedTemplate, variants: ReadonlyArray<Variant>) {
  const { tokenizer } = subject.repository
  const days = yield* daysOf(template)
  const formsByVariant = variants.map((variant) => formsOf(variant, subject.offers.templated, days))
  const prompts = yield* template.render(formsByVariant.flat())
  const texts = prompts.map((text) => text ?? "")
  const encoded = tokenizer === null ? [] : yield* tokenizer.encode(texts, false)
  let at = 0
  return formsByVariant.map((forms) =>
    forms.map((): Rendered => {
      const index = at++
      return { text: prompts[index] ?? null, ids: encoded[index] }
    })
  )
})

/** The ids of the prompt that the engine builds on both routes, and whether the answer counts them. */
const enginePrompts = Effect.fnUntraced(function* ({ client, salt, servedName }: SuiteSubject, { messages, settings, tools }: Variant) {
  const extra = { ...(tools === undefined ? {} : { tools }), ...(settings === undefined ? {} : { chat_template_kwargs: settings }) }
  const answer = yield* client.post("/tokenize", JSON.stringify({ model: servedName, messages, ...extra, add_generation_prompt: true }))
  const tokens = answer.status === 200 ? Option.getOrNull(decodeTokens(answer.text)) : null
  const body = { model: servedName, cache_salt: salt, messages, ...extra, temperature: 0, max_tokens: 1, return_token_ids: true }
  const { promptIds, usage } = yield* readAnswer(client, chatPath, tools === undefined ? body : { ...body, tool_choice: "auto" })
  return {
    prompts: [promptIds, tokens?.tokens ?? null].filter((ids) => ids !== null),
    isCounted: promptIds === null || promptIds.length === usage.prompt_tokens
  }
})

/** Whether the engine's prompts are each other's and one of the template's; null if there is nothing to compare. */
const agrees = ([first, ...further]: ReadonlyArray<ReadonlyArray<number>>, pinned: ReadonlyArray<ReadonlyArray<number>>): boolean | null => {
  if (first === undefined || further.length + pinned.length === 0) return null
  return further.every((ids) => same(first, ids)) && (pinned.length === 0 || pinned.some((ids) => same(first, ids)))
}

/**
 * Compares the engine's prompts of a conversation with the pinned ones. `isJudged`: whether there were two to compare.
 */
const compareVariant = Effect.fnUntraced(function* (subject: SuiteSubject, variant: Variant, pinned: ReadonlyArray<Rendered>) {
  const { isCounted, prompts } = yield* enginePrompts(subject, variant)
  const isSame = agrees(
    prompts,
    pinned.flatMap(({ ids }) => (ids === undefined ? [] : [ids]))
  )
  return { name: variant.name, isJudged: isSame !== null, isDifferent: isSame === false || !isCounted }
})

/** On both paths the engine builds the same prompt from a conversation as the pinned template. */
export const templateAgrees: TrialCheck = {
  name: "template_agrees",
  class: "required",
  purpose: "Conversations become the prompt of the pinned template, on the serving route too",
  limitSeconds: seconds(15),
  skipped: ({ chat }) => (chat ? null : "no chat template"),
  run: Effect.fnUntraced(function* (subject) {
    const { offers, repository } = subject
    const template = offers.ownPrompts?.(repository.config) === true ? null : repository.template
    const variants = variantsOf(subject, yield* vocabularyWords(subject, "template_agrees", 5))
    const rendered = template === null ? null : yield* renderVariants(subject, template, variants)
    const compared = yield* Effect.forEach(
      variants.flatMap((variant, index) => {
        const pinned = rendered?.[index]?.filter(({ text }) => text !== null) ?? []
        // If the template refuses a conversation, the engine must refuse it too. A conversation that cannot be rendered
        // here is skipped.
        return template !== null && pinned.length === 0 ? [] : [{ variant, pinned }]
      }),
      ({ pinned, variant }) => compareVariant(subject, variant, pinned)
    )
    const different = compared.flatMap(({ isDifferent, name }) => (isDifferent ? [name] : []))
    if (!compared.some(({ isJudged }) => isJudged)) return yield* new NotApplicable({ reason: "neither the commit's template nor the engine gives a prompt" })
    if (different.length > 0)
      return yield* unexpected(`the engine's prompt differs in ${different.length} of ${compared.length} conversations (first: ${different[0]})`)
    return `${compared.length} conversations${template === null ? ", compared only between the engine's two routes" : ""}`
  })
}
