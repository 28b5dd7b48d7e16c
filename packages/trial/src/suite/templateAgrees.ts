import { Clock, Effect, Option, Schema } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { readAnswer } from "./readAnswer.ts"
import { chatPath, type SuiteSubject } from "./SuiteSubject.ts"
import { type Conversation, conversations } from "./texts/conversations.ts"

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

const variantsOf = ({ capabilities }: SuiteSubject): ReadonlyArray<Variant> => [
  ...conversations,
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

/** On both paths the engine builds the same prompt from a conversation as the pinned template. */
export const templateAgrees: TrialCheck = {
  name: "template_agrees",
  class: "required",
  purpose: "Conversations become the prompt of the pinned template, on the serving route too",
  limitSeconds: seconds(15),
  skipped: ({ chat }) => (chat ? null : "no chat template"),
  run: Effect.fnUntraced(function* (subject) {
    const { client, offers, repository, salt, servedName } = subject
    const { tokenizer } = repository
    const template = offers.ownPrompts?.(repository.config) === true ? null : repository.template
    let compared = 0
    let held = 0
    const different: Array<string> = []
    const variants = variantsOf(subject)
    const now = yield* Clock.currentTimeMillis
    // The engine's clock determines the day: today in UTC, or the day before or after.
    const days = template?.writesDay === true ? [now, now - day, now + day] : [now]
    // Engines differ in how they pass parts to the template: each variant is rendered in all possible forms.
    const { asParts, between, tool } = { asParts: false, between: "\n", tool: {}, ...offers.templated }
    const forms = variants.flatMap(({ messages, settings, tools }) => {
      const extra = { ...(tools === undefined ? {} : { tools: tools.map((one) => ({ ...one, ...tool })) }), ...settings }
      const parsedMessages = parsed(messages)
      return [flattened(parsedMessages, between), parsedMessages, ...(asParts ? [wrapped(parsedMessages)] : [])].flatMap((form) =>
        days.map((at) => ({ messages: form, extra, at }))
      )
    })
    const each = forms.length / Math.max(1, variants.length)
    const prompts = template === null ? [] : yield* template.render(forms)
    const encoded =
      tokenizer === null
        ? []
        : yield* tokenizer.encode(
            prompts.map((text) => text ?? ""),
            false
          )
    for (const [index, { messages, name, settings, tools }] of variants.entries()) {
      const extra = { ...(tools === undefined ? {} : { tools }) }
      const kwargs = settings === undefined ? {} : { chat_template_kwargs: settings }
      const rendered = forms.flatMap((_, form) => (Math.floor(form / each) === index && prompts[form] != null ? [form] : []))
      const ours = rendered.flatMap((form) => encoded.slice(form, form + 1))
      // If the template refuses a conversation, the engine must refuse it too. A conversation that cannot be rendered
      // here is skipped.
      if (template !== null && rendered.length === 0) continue
      const answer = yield* client.post("/tokenize", JSON.stringify({ model: servedName, messages, ...extra, ...kwargs, add_generation_prompt: true }))
      const tokens = answer.status === 200 ? Option.getOrNull(decodeTokens(answer.text)) : null
      const body = { model: servedName, cache_salt: salt, messages, ...extra, ...kwargs, temperature: 0, max_tokens: 1, return_token_ids: true }
      const { promptIds, usage } = yield* readAnswer(client, chatPath, tools === undefined ? body : { ...body, tool_choice: "auto" })
      compared++
      const theirs = [promptIds, tokens?.tokens ?? null].filter((ids) => ids !== null)
      const [first] = theirs
      if (first === undefined) continue
      if (theirs.length + ours.length > 1) held++
      const agree = theirs.every((ids) => same(first, ids)) && (ours.length === 0 || ours.some((ids) => same(first, ids)))
      if (!agree || (promptIds !== null && promptIds.length !== usage.prompt_tokens)) different.push(name)
    }
    if (held === 0) return yield* new NotApplicable({ reason: "neither our template nor the engine tells a prompt" })
    if (different.length > 0)
      return yield* unexpected(`the engine's prompt differs in ${different.length} of ${compared} conversations (first: ${different[0]})`)
    return `${compared} conversations${template === null ? ", by the engine's both routes only" : ""}`
  })
}
