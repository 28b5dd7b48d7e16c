import { messageInputTokens, streamEvents } from "@seatrial/domain"
import { Option, Schema } from "effect"
import { decodeEvent, decodeMessage, decodeMessageEvent, decodeResponse, decodeResponseText, greedily, messageText, responseText } from "./pathBodies.ts"
import { mayThink, roomAfterThought, type SuiteSubject } from "./SuiteSubject.ts"

export type Path = "/v1/responses" | "/v1/messages"

/** A call as reported: its arguments as JSON text or as an object. */
export interface Called {
  readonly name: string
  readonly args: unknown
}

/**
 * The description names a unit that the schema forbids, so that the answer is right only if the engine applies the
 * schema.
 */
const unit = { type: "string", enum: ["kelvin"], description: "celsius" }
const strictParameters = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Rome"] }, unit, days: { type: "integer", enum: [3] } },
  required: ["city", "unit", "days"],
  additionalProperties: false
}
const Measure = Schema.Struct({ city: Schema.Literals(["Paris", "Rome"]), unit: Schema.Literal("kelvin"), days: Schema.Literal(3) })
const measured = { onExcessProperty: "error" } as const

/** Whether the arguments of a call match the schema of a strict tool, as JSON text or as an object. */
export const isMeasure = (args: unknown): boolean =>
  Option.isSome(
    typeof args === "string" ? Schema.decodeUnknownOption(Schema.fromJsonString(Measure), measured)(args) : Schema.decodeUnknownOption(Measure, measured)(args)
  )

const tools = [
  { name: "get_weather", description: "The weather of a city now." },
  { name: "get_time", description: "The time in a city now." }
]
const parameters = { type: "object", properties: { city: { type: "string", description: "Name of the city" } }, required: ["city"] }
const weather = "What is the weather in Paris?"
export const twoCities = "What is the weather in Paris and in Rome?"
export const unrelated = "Tell me a joke about a bicycle."

/** The same tools in the format of the chat route. */
export const chatTools = tools.map((tool) => ({ type: "function", function: { ...tool, parameters } }))

export const strictChatTools = tools.map((tool) => ({ type: "function", function: { ...tool, parameters: strictParameters, strict: true } }))

const City = Schema.Struct({ city: Schema.String })
const isCity = (args: unknown): boolean =>
  Option.isSome(typeof args === "string" ? Schema.decodeUnknownOption(Schema.fromJsonString(City))(args) : Schema.decodeUnknownOption(City)(args))

/** The fault in the calls of one tool, or of either; null without a fault. */
export const wrongWith = (called: ReadonlyArray<Called>, wanted?: string): string | null => {
  if (called.length === 0) return "no call"
  if (called.some(({ name }) => (wanted === undefined ? tools.every((tool) => tool.name !== name) : name !== wanted))) return "a call of another tool"
  return called.every(({ args }) => isCity(args)) ? null : "arguments that do not match the tool's schema"
}

const tokens = 128
/** Token limit of an answer: not every path can turn reasoning off. */
export const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, tokens) : tokens)

/** A question with two tools. */
export interface Asking {
  readonly question?: string
  /** The result of the tool that was called for the question; absent if none was called. */
  readonly result?: string
  readonly choice?: "auto" | "required" | "none" | { readonly name: string }
  /** Whether at most one call is allowed. */
  readonly single?: boolean
  /** Whether the tools are strict. */
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

/** A question with two tools, in the format of a message and of a token count. */
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
  (Option.getOrNull(response)?.output ?? []).flatMap(({ arguments: args, name, type }) => (type === "function_call" ? [{ name: name ?? "", args }] : []))

const isIncomplete = ({ status }: { readonly status: string }) => status === "incomplete"
const isCut = ({ stop_reason }: { readonly stop_reason: string }) => stop_reason === "max_tokens"

/** The format of one path. */
interface Dialect {
  readonly bodyOf: (subject: SuiteSubject, asking: Asking) => object
  /** The calls of an answer and of a stream. The parts of streamed calls are assembled as a client does. */
  readonly callsOf: (received: string) => ReadonlyArray<Called>
  readonly streamedCallsOf: (received: string) => ReadonlyArray<Called>
  readonly textOf: (received: string) => string
  /** Whether an answer or a stream ended at its token limit: reasoning may use all tokens. */
  readonly cut: (received: string) => boolean
  readonly cutStream: (received: string) => boolean
  /** Tokens of the input; null if the path does not report them. */
  readonly inputOf: (received: string) => number | null
}

export const dialects: Readonly<Record<Path, Dialect>> = {
  "/v1/responses": {
    bodyOf: responseBody,
    textOf: responseText,
    inputOf: (received) => Option.getOrNull(decodeResponseText(received))?.usage.input_tokens ?? null,
    cut: (received) => Option.exists(decodeResponseText(received), isIncomplete),
    cutStream: (received) =>
      streamEvents(received).some((data) => Option.exists(decodeEvent(data), ({ response }) => Option.exists(decodeResponse(response), isIncomplete))),
    callsOf: (received) => itemsOf(decodeResponseText(received)),
    streamedCallsOf: (received) => {
      const events = streamEvents(received).flatMap((data) => Option.toArray(decodeEvent(data)))
      const called = itemsOf(decodeResponse(events.at(-1)?.response))
      const pieces = events.filter(({ type }) => type === "response.function_call_arguments.delta").map(({ delta }) => (typeof delta === "string" ? delta : ""))
      return called.length === 1 ? called.map((call) => (isCity(call.args) ? { ...call, args: pieces.join("") } : call)) : called
    }
  },
  "/v1/messages": {
    bodyOf: messageBody,
    textOf: messageText,
    inputOf: (received) => Option.match(decodeMessage(received), { onNone: () => null, onSome: ({ usage }) => messageInputTokens(usage) }),
    cut: (received) => Option.exists(decodeMessage(received), isCut),
    cutStream: (received) =>
      streamEvents(received).some((data) => Option.exists(decodeMessageEvent(data), ({ delta }) => isCut({ stop_reason: delta?.stop_reason ?? "" }))),
    callsOf: (received) =>
      (Option.getOrNull(decodeMessage(received))?.content ?? []).flatMap(({ input, name, type }) =>
        type === "tool_use" ? [{ name: name ?? "", args: input }] : []
      ),
    streamedCallsOf: (received) => {
      const called: Array<{ name: string; args: string }> = []
      for (const { content_block: block, delta } of streamEvents(received).flatMap((data) => Option.toArray(decodeMessageEvent(data)))) {
        if (block?.type === "tool_use") called.push({ name: block.name ?? "", args: "" })
        const last = called.at(-1)
        if (last !== undefined) last.args += delta?.partial_json ?? ""
      }
      return called
    }
  }
}
