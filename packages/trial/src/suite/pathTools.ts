import { Effect, Option } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeCount, post } from "./pathBodies.ts"
import { type Asking, chatTools, countedBody, dialects, isMeasure, type Path, roomOf, twoCities, unrelated, wrongWith } from "./pathCalls.ts"
import { converse, mayThink, type SuiteSubject, thoughtSeconds, together } from "./SuiteSubject.ts"

/** Time limit in seconds for this many answers, each with possible reasoning. */
const limitOf = (answers: number) => (subject: SuiteSubject) => 30 + (mayThink(subject) ? thoughtSeconds(answers) : 0)

const skippedOn =
  (path: Path, field: string, isClaimed: (calling: SuiteSubject["capabilities"]["tool_calling"]) => boolean) =>
  (subject: SuiteSubject): string | null => {
    const { supported_parameters_by_endpoint: fields, supports_tool_calls, tool_calling } = subject.capabilities
    return claims(path)(subject) ?? (supports_tool_calls && isClaimed(tool_calling) && fields[path]?.includes(field) === true ? null : "not claimed")
  }

/** Whether reasoning may have used all tokens, so that the answer is incomplete. */
const stillThought = (subject: SuiteSubject, cut: boolean): boolean => cut && mayThink(subject)

/**
 * The fault in the answer about two cities. The model decides how many calls it makes: the path must make the
 * calls that the chat route makes for the same prompt.
 */
const lostOf = Effect.fnUntraced(function* (subject: SuiteSubject, path: Path, received: string) {
  const { cut, inputOf, callsOf } = dialects[path]
  const called = callsOf(received)
  if (called.length > 1) return wrongWith(called, "get_weather")
  if (stillThought(subject, cut(received))) return null
  const messages = [{ role: "user", content: twoCities }]
  const chat = yield* converse(subject, messages, { max_tokens: roomOf(subject), tools: chatTools, tool_choice: "auto" })
  return chat.toolCalls.length > called.length && chat.usage.prompt_tokens === inputOf(received)
    ? `calls: ${called.length}, on the chat route ${chat.toolCalls.length}`
    : null
})

/** Fails if the answer about two cities has a fault, and the answer to the same request again (`ask`) too. */
const losesNone = Effect.fnUntraced(function* (subject: SuiteSubject, path: Path, received: string, ask: ReturnType<typeof post>) {
  // In another batch a model may answer differently: only a failure that repeats belongs to the path.
  if ((yield* lostOf(subject, path, received)) === null) return
  const again = yield* lostOf(subject, path, yield* ask)
  if (again !== null) return yield* unexpected(`two cities: ${again}`)
})

/** Fails if the calls are not calls of the weather. `way`: whole or streamed. */
const callsWeather = (way: string, calls: Parameters<typeof wrongWith>[0]) => {
  const wrong = wrongWith(calls, "get_weather")
  return wrong === null ? Effect.void : unexpected(`${way}: ${wrong}`)
}

/**
 * Tools of a path are called as on the chat route: whole and streamed, several at once, and with their results in the
 * next turn.
 */
const toolsOf = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} tools are called, whole and streamed, twice for two questions, and their results are used`,
  limitSeconds: limitOf(5),
  skipped: skippedOn(path, "tools", () => true),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, cutStream, streamedCallsOf, textOf, callsOf } = dialects[path]
    const { parallel_calls, tool_results } = subject.capabilities.tool_calling
    const ask = (asking: Asking, more: object = {}) => post(subject, path, { ...bodyOf(subject, asking), ...more })
    const [one, stream, two, after] = yield* Effect.all(
      [
        ask({}),
        ask({}, { stream: true }),
        parallel_calls ? ask({ question: twoCities }) : Effect.succeed(null),
        tool_results ? ask({ result: "snow" }) : Effect.succeed(null)
      ],
      together(mayThink(subject))
    )
    if (!stillThought(subject, cut(one))) yield* callsWeather("whole", callsOf(one))
    if (!stillThought(subject, cutStream(stream))) yield* callsWeather("streamed", streamedCallsOf(stream))
    if (two !== null) yield* losesNone(subject, path, two, ask({ question: twoCities }))
    if (after !== null && !stillThought(subject, cut(after)) && !textOf(after).toLowerCase().includes("snow"))
      return yield* unexpected("the result of a tool is not used")
    return `${[one, stream, two, after].filter((received) => received !== null).length} answers`
  })
})

const countPath = "/v1/messages/count_tokens"

/** If no tool may be called, an engine may omit the tools from the prompt, and must then not count them. */
const countsWithoutTools = Effect.fnUntraced(function* (subject: SuiteSubject, input: number | null) {
  if (claims(countPath)(subject) !== null) return
  const counted = Option.getOrNull(decodeCount(yield* post(subject, countPath, countedBody({ choice: "none" }))))?.input_tokens ?? null
  if (counted !== input) return yield* unexpected(`none: count_tokens gives ${counted ?? "no"} tokens for a message of ${input ?? "no"}`)
})

/** `tool_choice` of a path decides, regardless of the question. */
const choiceOf = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} tool_choice decides: a named tool, any tool, or none`,
  limitSeconds: limitOf(3),
  skipped: skippedOn(path, "tool_choice", ({ tool_choice }) => tool_choice.named || tool_choice.required || tool_choice.none),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, inputOf, callsOf } = dialects[path]
    const { named, none, required } = subject.capabilities.tool_calling.tool_choice
    // Null also if the model still reasons: it has called nothing yet.
    const calledOf = (received: string | null) => (received === null || stillThought(subject, cut(received)) ? null : callsOf(received))
    const ask = (isOffered: boolean, asking: Asking) => (isOffered ? post(subject, path, bodyOf(subject, asking)) : Effect.succeed(null))
    const [byName, any, no] = yield* Effect.all(
      [
        // The question asks for the other tool, so that only a binding choice leads to this one.
        ask(named, { choice: { name: "get_time" } }),
        ask(required, { choice: "required", question: unrelated }),
        ask(none, { choice: "none" })
      ],
      together(mayThink(subject))
    )
    const [calledByName, calledAny, calledNone] = [calledOf(byName), calledOf(any), calledOf(no)]
    const wrong = calledByName && wrongWith(calledByName, "get_time")
    if (wrong !== null) return yield* unexpected(`by name: ${wrong}`)
    const anyWrong = calledAny && wrongWith(calledAny)
    if (anyWrong !== null) return yield* unexpected(`required: ${anyWrong}`)
    if (calledNone !== null && calledNone.length > 0) return yield* unexpected(`none: ${calledNone.length} calls`)
    if (no !== null && path === "/v1/messages") yield* countsWithoutTools(subject, inputOf(no))
    return `${[calledByName, calledAny, calledNone].filter((called) => called !== null).length} choices`
  })
})

/** If at most one call is allowed, no second call is made. */
const singleOf = (name: string, path: Path, field: string): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} two questions become one call if at most one is allowed`,
  limitSeconds: limitOf(1),
  skipped: skippedOn(path, field, ({ single_call }) => single_call),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, callsOf } = dialects[path]
    const answer = yield* post(subject, path, bodyOf(subject, { question: twoCities, single: true }))
    const called = callsOf(answer)
    if (called.length > 1) return yield* unexpected(`${called.length} calls`)
    const wrong = stillThought(subject, cut(answer)) ? null : wrongWith(called, "get_weather")
    return wrong === null ? `${called.length} call` : yield* unexpected(wrong)
  })
})

/** A strict tool that the model calls by its own choice obeys its schema on the path too. */
const strictOf = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} the arguments of a strict tool match its schema, even against its description`,
  limitSeconds: limitOf(1),
  skipped: skippedOn(path, "tools", ({ strict_arguments }) => strict_arguments),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, callsOf } = dialects[path]
    const answer = yield* post(subject, path, bodyOf(subject, { strict: true }))
    const called = callsOf(answer)
    const wrong = stillThought(subject, cut(answer)) ? null : wrongWith(called)
    if (wrong !== null) return yield* unexpected(wrong)
    return called.every(({ args }) => isMeasure(args)) ? `${called.length} call` : yield* unexpected("arguments that a strict tool does not take")
  })
})

/**
 * Tools on paths other than the chat route. Each path has its own format, and a feature that a path lacks is withdrawn
 * for that path only.
 */
export const pathTools: ReadonlyArray<TrialCheck> = [
  toolsOf("responses_tools", "/v1/responses"),
  choiceOf("responses_tool_choice", "/v1/responses"),
  singleOf("responses_tool_single", "/v1/responses", "parallel_tool_calls"),
  strictOf("responses_tool_strict", "/v1/responses"),
  toolsOf("messages_tools", "/v1/messages"),
  choiceOf("messages_tool_choice", "/v1/messages"),
  singleOf("messages_tool_single", "/v1/messages", "tool_choice"),
  strictOf("messages_tool_strict", "/v1/messages")
]
