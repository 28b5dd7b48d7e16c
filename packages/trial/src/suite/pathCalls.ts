import { Option, Schema } from "effect"
import {
  decodeEvent,
  decodeMessage,
  decodeMessageEvent,
  decodeResponse,
  decodeResponseText,
  eventsOf,
  greedily,
  messageInput,
  messageText,
  responseText
} from "./pathBodies.ts"
import { mayThink, roomAfterThought, type SuiteSubject } from "./SuiteSubject.ts"

export type Path = "/v1/responses" | "/v1/messages"

/** A call as it was told: its arguments as a text of JSON, or as what they are. */
export interface Called {
  readonly name: string
  readonly given: unknown
}

/** Its description says what its schema does not let through, so that only a schema that binds leads to the one unit. */
const unit = { type: "string", enum: ["kelvin"], description: "celsius" }
const strictParameters = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Rome"] }, unit },
  required: ["city", "unit"],
  additionalProperties: false
}
const Measure = Schema.Struct({ city: Schema.Literals(["Paris", "Rome"]), unit: Schema.Literal("kelvin") })
const measured = { onExcessProperty: "error" } as const

/** Whether the arguments of a call are of a strict tool's schema, as a text of JSON or as what they are. */
export const isMeasure = (given: unknown): boolean =>
  Option.isSome(
    typeof given === "string"
      ? Schema.decodeUnknownOption(Schema.fromJsonString(Measure), measured)(given)
      : Schema.decodeUnknownOption(Measure, measured)(given)
  )

const tools = [
  { name: "get_weather", description: "The weather of a city now." },
  { name: "get_time", description: "The time in a city now." }
]
const parameters = { type: "object", properties: { city: { type: "string", description: "Name of the city" } }, required: ["city"] }
const weather = "What is the weather in Paris?"
export const twoCities = "What is the weather in Paris and in Rome?"
export const unrelated = "Tell me a joke about a bicycle."

/** The same tools as the chat route takes them. */
export const chatTools = tools.map((tool) => ({ type: "function", function: { ...tool, parameters } }))

export const strictChatTools = tools.map((tool) => ({ type: "function", function: { ...tool, parameters: strictParameters, strict: true } }))

const City = Schema.Struct({ city: Schema.String })
const isCity = (given: unknown): boolean =>
  Option.isSome(typeof given === "string" ? Schema.decodeUnknownOption(Schema.fromJsonString(City))(given) : Schema.decodeUnknownOption(City)(given))

/** What is wrong with calls of one tool, or of either; null where nothing is. */
export const wrongWith = (called: ReadonlyArray<Called>, wanted?: string): string | null => {
  if (called.length === 0) return "no call"
  if (called.some(({ name }) => (wanted === undefined ? tools.every((tool) => tool.name !== name) : name !== wanted))) return "a call of another tool"
  return called.every(({ given }) => isCity(given)) ? null : "arguments that are not of the tool's schema"
}

const tokens = 128
/** Tokens that an answer may take: not every path can be told not to think. */
export const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, tokens) : tokens)

/** What is asked with two tools. */
export interface Asking {
  readonly question?: string
  /** What the tool gave back that was called for the question; absent where none was. */
  readonly result?: string
  readonly choice?: "auto" | "required" | "none" | { readonly name: string }
  /** One call at most. */
  readonly single?: boolean
  /** Whether the tools are strict ones. */
  readonly strict?: boolean
}

const callId = "call00001"

const responseBody = (subject: SuiteSubject, { choice = "auto", question = weather, result, single = false, strict = false }: Asking): object => ({
  ...greedily,
  input:
    result === undefined
      ? question
      : [
          { type: "message", role: "user", content: question },
          { type: "function_call", call_id: callId, name: "get_weather", arguments: '{"city": "Paris"}' },
          { type: "function_call_output", call_id: callId, output: result }
        ],
  max_output_tokens: roomOf(subject),
  tools: tools.map((tool) => ({ type: "function", ...tool, ...(strict ? { parameters: strictParameters, strict } : { parameters }) })),
  tool_choice: typeof choice === "string" ? choice : { type: "function", ...choice },
  ...(single ? { parallel_tool_calls: false } : {}),
  store: false,
  cache_salt: subject.salt
})

const choiceTypes = { auto: "auto", required: "any", none: "none" } as const

/** What is asked with two tools, as a message has it and as its tokens are counted. */
export const countedBody = ({ choice = "auto", question = weather, result, single = false, strict = false }: Asking): object => ({
  messages: [
    { role: "user", content: question },
    ...(result === undefined
      ? []
      : [
          { role: "assistant", content: [{ type: "tool_use", id: callId, name: "get_weather", input: { city: "Paris" } }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: callId, content: result }] }
        ])
  ],
  tools: tools.map((tool) => ({ ...tool, ...(strict ? { input_schema: strictParameters, strict } : { input_schema: parameters }) })),
  tool_choice: {
    ...(typeof choice === "string" ? { type: choiceTypes[choice] } : { type: "tool", ...choice }),
    ...(single ? { disable_parallel_tool_use: true } : {})
  }
})

const messageBody = (subject: SuiteSubject, asking: Asking): object => ({ ...greedily, ...countedBody(asking), max_tokens: roomOf(subject) })

const itemsOf = (response: ReturnType<typeof decodeResponse>): ReadonlyArray<Called> =>
  (Option.getOrNull(response)?.output ?? []).flatMap(({ arguments: given, name, type }) => (type === "function_call" ? [{ name: name ?? "", given }] : []))

const isIncomplete = ({ status }: { readonly status: string }) => status === "incomplete"
const isCut = ({ stop_reason }: { readonly stop_reason: string }) => stop_reason === "max_tokens"

/** A path's own words. */
interface Dialect {
  readonly bodyOf: (subject: SuiteSubject, asking: Asking) => object
  /** The calls of an answer, and of a stream: there as a client puts them together of their parts. */
  readonly whole: (told: string) => ReadonlyArray<Called>
  readonly streamed: (told: string) => ReadonlyArray<Called>
  readonly textOf: (told: string) => string
  /** Whether an answer, or a stream, ended where its tokens did: a thought may take them all. */
  readonly cut: (told: string) => boolean
  readonly cutStream: (told: string) => boolean
  /** Tokens of what was asked; null where that is not told. */
  readonly inputOf: (told: string) => number | null
}

export const dialects: Readonly<Record<Path, Dialect>> = {
  "/v1/responses": {
    bodyOf: responseBody,
    textOf: responseText,
    inputOf: (told) => Option.getOrNull(decodeResponseText(told))?.usage.input_tokens ?? null,
    cut: (told) => Option.exists(decodeResponseText(told), isIncomplete),
    cutStream: (told) =>
      eventsOf(told).some((data) => Option.exists(decodeEvent(data), ({ response }) => Option.exists(decodeResponse(response), isIncomplete))),
    whole: (told) => itemsOf(decodeResponseText(told)),
    streamed: (told) => {
      const events = eventsOf(told).flatMap((data) => Option.toArray(decodeEvent(data)))
      const called = itemsOf(decodeResponse(events.at(-1)?.response))
      const pieces = events.filter(({ type }) => type === "response.function_call_arguments.delta").map(({ delta }) => (typeof delta === "string" ? delta : ""))
      return called.length === 1 ? called.map((call) => (isCity(call.given) ? { ...call, given: pieces.join("") } : call)) : called
    }
  },
  "/v1/messages": {
    bodyOf: messageBody,
    textOf: messageText,
    inputOf: (told) => Option.match(decodeMessage(told), { onNone: () => null, onSome: ({ usage }) => messageInput(usage) }),
    cut: (told) => Option.exists(decodeMessage(told), isCut),
    cutStream: (told) =>
      eventsOf(told).some((data) => Option.exists(decodeMessageEvent(data), ({ delta }) => isCut({ stop_reason: delta?.stop_reason ?? "" }))),
    whole: (told) =>
      (Option.getOrNull(decodeMessage(told))?.content ?? []).flatMap(({ input, name, type }) =>
        type === "tool_use" ? [{ name: name ?? "", given: input }] : []
      ),
    streamed: (told) => {
      const called: Array<{ name: string; given: string }> = []
      for (const { content_block: block, delta } of eventsOf(told).flatMap((data) => Option.toArray(decodeMessageEvent(data)))) {
        if (block?.type === "tool_use") called.push({ name: block.name ?? "", given: "" })
        const last = called.at(-1)
        if (last !== undefined) last.given += delta?.partial_json ?? ""
      }
      return called
    }
  }
}
