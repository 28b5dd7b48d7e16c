import { Effect, Option, Schema } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeEvent, decodeMessage, decodeMessageEvent, decodeResponse, decodeResponseText, eventsOf, post } from "./pathBodies.ts"
import { roomAfterThought, type SuiteSubject, thoughtSeconds } from "./SuiteSubject.ts"

type Path = "/v1/responses" | "/v1/messages"

/** A call as it was told: its arguments as a text of JSON, or as what they are. */
interface Called {
  readonly name: string
  readonly given: unknown
}

const tools = [
  { name: "get_weather", description: "The weather of a city now." },
  { name: "get_time", description: "The time in a city now." }
]
const parameters = { type: "object", properties: { city: { type: "string", description: "Name of the city" } }, required: ["city"] }
const weather = "What is the weather in Paris?"

const City = Schema.Struct({ city: Schema.String })
const isCity = (given: unknown): boolean =>
  Option.isSome(typeof given === "string" ? Schema.decodeUnknownOption(Schema.fromJsonString(City))(given) : Schema.decodeUnknownOption(City)(given))

const tokens = 128
const mayThink = ({ repository }: SuiteSubject): boolean => repository.thinking.thinks
const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, tokens) : tokens)

/** The request for the weather, with what says which tool is to be called. */
const bodyOf = (subject: SuiteSubject, path: Path, choice: object | string): object =>
  path === "/v1/responses"
    ? {
        input: weather,
        max_output_tokens: roomOf(subject),
        tools: tools.map((tool) => ({ type: "function", ...tool, parameters })),
        tool_choice: choice,
        temperature: 0,
        top_p: 1,
        top_k: -1,
        store: false,
        cache_salt: subject.salt
      }
    : {
        messages: [{ role: "user", content: weather }],
        max_tokens: roomOf(subject),
        tools: tools.map((tool) => ({ ...tool, input_schema: parameters })),
        tool_choice: choice,
        temperature: 0,
        top_p: 1,
        top_k: -1
      }

const itemsOf = (response: ReturnType<typeof decodeResponse>): ReadonlyArray<Called> =>
  (Option.getOrNull(response)?.output ?? []).flatMap(({ arguments: given, name, type }) => (type === "function_call" ? [{ name: name ?? "", given }] : []))

/** The calls of an answer, and of a stream: there as a client puts them together of their parts. */
const readers: Readonly<Record<Path, { readonly whole: (told: string) => ReadonlyArray<Called>; readonly streamed: (told: string) => ReadonlyArray<Called> }>> =
  {
    "/v1/responses": {
      whole: (told) => itemsOf(decodeResponseText(told)),
      streamed: (told) => {
        const events = eventsOf(told).flatMap((data) => Option.toArray(decodeEvent(data)))
        const called = itemsOf(decodeResponse(events.at(-1)?.response))
        const pieces = events
          .filter(({ type }) => type === "response.function_call_arguments.delta")
          .map(({ delta }) => (typeof delta === "string" ? delta : ""))
        return called.length === 1 ? called.map((call) => (isCity(call.given) ? { ...call, given: pieces.join("") } : call)) : called
      }
    },
    "/v1/messages": {
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

const wrongWith = (called: ReadonlyArray<Called>, wanted: string): string | null => {
  if (called.length === 0) return "no call"
  if (called.some(({ name }) => name !== wanted)) return "a call of another tool"
  return called.every(({ given }) => isCity(given)) ? null : "arguments that are not of the tool's schema"
}

/** Tools of a path are called there as they are on the chat route, whole and streamed; which one, by the model's choice or by name. */
const toolsOf = (name: string, path: Path, choices: { readonly auto: object | string; readonly named: object }): TrialCheck => ({
  name,
  class: "capability",
  purpose: `On ${path} a question that a tool answers becomes a call of it, whole and streamed, and a tool asked for by name is called`,
  limitSeconds: (subject) => 30 + (mayThink(subject) ? thoughtSeconds(3) : 0),
  skipped: (subject) => claims(path)(subject) ?? (subject.capabilities.supports_tool_calls ? null : "not claimed"),
  run: Effect.fnUntraced(function* (subject) {
    const { streamed, whole } = readers[path]
    const auto = bodyOf(subject, path, choices.auto)
    const answers: Array<readonly [way: string, called: ReadonlyArray<Called>, wanted: string]> = [
      ["whole", whole(yield* post(subject, path, auto)), "get_weather"],
      ["streamed", streamed(yield* post(subject, path, { ...auto, stream: true })), "get_weather"]
    ]
    // The question asks for the other tool, so that only obeying leads to this one.
    if (subject.capabilities.tool_calling.tool_choice.named) {
      answers.push(["by name", whole(yield* post(subject, path, bodyOf(subject, path, choices.named))), "get_time"])
    }
    for (const [way, called, wanted] of answers) {
      const wrong = wrongWith(called, wanted)
      if (wrong !== null) return yield* unexpected(`${way}: ${wrong}`)
    }
    return `${answers.length} answers with calls`
  })
})

export const responsesTools = toolsOf("responses_tools", "/v1/responses", { auto: "auto", named: { type: "function", name: "get_time" } })

export const messagesTools = toolsOf("messages_tools", "/v1/messages", { auto: { type: "auto" }, named: { type: "tool", name: "get_time" } })
