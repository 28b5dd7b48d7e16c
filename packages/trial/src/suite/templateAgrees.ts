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

/** Arguments of calls as templates are given them: engines parse the text before they render it. */
const parsed = (messages: ReadonlyArray<object>): ReadonlyArray<object> =>
  messages.map((message) =>
    "tool_calls" in message ? { ...message, tool_calls: [{ ...call, function: { name: call.function.name, arguments: { city: "Paris" } } }] } : message
  )

/** Contents as one text, which engines make of them for templates that know no parts. */
const flattened = (messages: ReadonlyArray<object>, between: string): ReadonlyArray<object> =>
  messages.map((message) => {
    if (!("content" in message) || !Array.isArray(message.content)) return message
    const texts = Option.getOrElse(decodeParts(message.content), () => [])
    return { ...message, content: texts.map(({ text }) => text).join(between) }
  })

/** Texts as the one part of their message, but for a tool's. */
const wrapped = (messages: ReadonlyArray<object>): ReadonlyArray<object> =>
  messages.map((message) =>
    "content" in message && typeof message.content === "string" && !("tool_call_id" in message)
      ? { ...message, content: [{ type: "text", text: message.content }] }
      : message
  )

/** Milliseconds. */
const day = 86_400_000

/** The prompt that a conversation becomes is the pinned template's, on the engine's both ways to it. */
export const templateAgrees: TrialCheck = {
  name: "template_agrees",
  class: "required",
  purpose: "Conversations become the prompt that the pinned template writes, by the route that serves too",
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
    // Midnight is where the engine's clock has it: today in UTC, and the days around it.
    const days = template?.writesDay === true ? [now, now - day, now + day] : [now]
    // Engines differ in what they make of parts: each variant is rendered in all forms that they may have.
    const { asParts, between, tool } = { asParts: false, between: "\n", tool: {}, ...offers.templated }
    const forms = variants.flatMap(({ messages, settings, tools }) => {
      const extra = { ...(tools === undefined ? {} : { tools: tools.map((one) => ({ ...one, ...tool })) }), ...settings }
      const given = parsed(messages)
      return [flattened(given, between), given, ...(asParts ? [wrapped(given)] : [])].flatMap((form) => days.map((at) => ({ messages: form, extra, at })))
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
      // What the template refuses, the engine has to refuse too; what it cannot render by us is left out.
      if (template !== null && rendered.length === 0) continue
      const told = yield* client.post("/tokenize", JSON.stringify({ model: servedName, messages, ...extra, ...kwargs, add_generation_prompt: true }))
      const tokens = told.status === 200 ? Option.getOrNull(decodeTokens(told.text)) : null
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
