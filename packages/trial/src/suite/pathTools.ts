import { Effect, Option } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeCount, post } from "./pathBodies.ts"
import { type Asking, chatTools, countedBody, dialects, isMeasure, type Path, roomOf, twoCities, unrelated, wrongWith } from "./pathCalls.ts"
import { converse, mayThink, type SuiteSubject, thoughtSeconds, together } from "./SuiteSubject.ts"

/** Seconds for so many answers, each of which may be thought about. */
const limitOf = (answers: number) => (subject: SuiteSubject) => 30 + (mayThink(subject) ? thoughtSeconds(answers) : 0)

const skippedOn =
  (path: Path, field: string, isClaimed: (calling: SuiteSubject["capabilities"]["tool_calling"]) => boolean) =>
  (subject: SuiteSubject): string | null => {
    const { supported_parameters_by_endpoint: fields, supports_tool_calls, tool_calling } = subject.capabilities
    return claims(path)(subject) ?? (supports_tool_calls && isClaimed(tool_calling) && fields[path]?.includes(field) === true ? null : "not claimed")
  }

/** What is wrong with the answer about two cities. How many calls are made is the model's choice: only what the chat route makes of the same prompt has the path to. */
const lostOf = Effect.fnUntraced(function* (subject: SuiteSubject, path: Path, told: string) {
  const { cut, inputOf, whole } = dialects[path]
  const called = whole(told)
  if (called.length > 1) return wrongWith(called, "get_weather")
  if (stillThought(subject, cut(told))) return null
  const messages = [{ role: "user", content: twoCities }]
  const chat = yield* converse(subject, messages, { max_tokens: roomOf(subject), tools: chatTools, tool_choice: "auto" })
  return chat.toolCalls.length > called.length && chat.usage.prompt_tokens === inputOf(told)
    ? `calls: ${called.length}, by the chat route ${chat.toolCalls.length}`
    : null
})

/** Whether a thought may have taken all of the tokens: nothing can be told of what had come after it. */
const stillThought = (subject: SuiteSubject, cut: boolean): boolean => cut && mayThink(subject)

/** Tools of a path are called there as they are on the chat route, whole and streamed, several at once too, and what they gave back is used. */
const toolsOf = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  heldToSeen: true,
  purpose: `On ${path} a question that a tool answers becomes a call of it, whole and streamed, one for two things two calls, and what a tool gave back is used`,
  limitSeconds: limitOf(5),
  skipped: skippedOn(path, "tools", () => true),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, cutStream, streamed, textOf, whole } = dialects[path]
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
    const wrong = stillThought(subject, cut(one)) ? null : wrongWith(whole(one), "get_weather")
    if (wrong !== null) return yield* unexpected(`whole: ${wrong}`)
    const streamedWrong = stillThought(subject, cutStream(stream)) ? null : wrongWith(streamed(stream), "get_weather")
    if (streamedWrong !== null) return yield* unexpected(`streamed: ${streamedWrong}`)
    // In another batch a model may answer otherwise: only what is so again is the path's.
    const lost = two === null ? null : yield* lostOf(subject, path, two)
    const again = lost === null ? null : yield* Effect.flatMap(ask({ question: twoCities }), (told) => lostOf(subject, path, told))
    if (again !== null) return yield* unexpected(`two cities: ${again}`)
    if (after !== null && !stillThought(subject, cut(after)) && !textOf(after).toLowerCase().includes("snow"))
      return yield* unexpected("what a tool gave back is not used")
    return `${[one, stream, two, after].filter((told) => told !== null).length} answers`
  })
})

const countPath = "/v1/messages/count_tokens"

/** A path's `tool_choice` decides, whatever the question is. */
const choiceOf = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  heldToSeen: true,
  purpose: `On ${path} a tool asked for by name is called, any where one is required, and none where none may be`,
  limitSeconds: limitOf(3),
  skipped: skippedOn(path, "tool_choice", ({ tool_choice }) => tool_choice.named || tool_choice.required || tool_choice.none),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, inputOf, whole } = dialects[path]
    const { named, none, required } = subject.capabilities.tool_calling.tool_choice
    // Null also where it still thinks: nothing is called yet, and nothing would be.
    const calledOf = (told: string | null) => (told === null || stillThought(subject, cut(told)) ? null : whole(told))
    const ask = (asked: boolean, asking: Asking) => (asked ? post(subject, path, bodyOf(subject, asking)) : Effect.succeed(null))
    const [byName, any, no] = yield* Effect.all(
      [
        // The question asks for the other tool, so that only obeying leads to this one.
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
    // Where no tool may be called an engine may leave them all out, and has to count them so.
    if (no !== null && path === "/v1/messages" && claims(countPath)(subject) === null) {
      const counted = Option.getOrNull(decodeCount(yield* post(subject, countPath, countedBody({ choice: "none" }))))?.input_tokens ?? null
      if (counted !== inputOf(no)) return yield* unexpected(`none: ${counted ?? "no"} tokens counted of a message of ${inputOf(no) ?? "no"}`)
    }
    return `${[calledByName, calledAny, calledNone].filter((called) => called !== null).length} choices`
  })
})

/** Where one call at most is asked for, no second one comes. */
const singleOf = (name: string, path: Path, field: string): TrialCheck => ({
  name,
  class: "capability",
  heldToSeen: true,
  purpose: `On ${path} two things asked for become one call where one at most may be`,
  limitSeconds: limitOf(1),
  skipped: skippedOn(path, field, ({ single_call }) => single_call),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, whole } = dialects[path]
    const told = yield* post(subject, path, bodyOf(subject, { question: twoCities, single: true }))
    const called = whole(told)
    if (called.length > 1) return yield* unexpected(`${called.length} calls`)
    const wrong = stillThought(subject, cut(told)) ? null : wrongWith(called, "get_weather")
    return wrong === null ? `${called.length} call` : yield* unexpected(wrong)
  })
})

/** A strict tool that the model calls by itself is held to its schema on the path too. */
const strictOf = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  heldToSeen: true,
  purpose: `On ${path} the arguments of a strict tool are of its schema, against what its description says`,
  limitSeconds: limitOf(1),
  skipped: skippedOn(path, "tools", ({ strict_arguments }) => strict_arguments),
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, cut, whole } = dialects[path]
    const told = yield* post(subject, path, bodyOf(subject, { strict: true }))
    const called = whole(told)
    const wrong = stillThought(subject, cut(told)) ? null : wrongWith(called)
    if (wrong !== null) return yield* unexpected(wrong)
    return called.every(({ given }) => isMeasure(given)) ? `${called.length} call` : yield* unexpected("arguments that a strict tool does not take")
  })
})

/** Tools beside the chat route: each path has words of its own for them, and what one does not do is taken from that path alone. */
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
