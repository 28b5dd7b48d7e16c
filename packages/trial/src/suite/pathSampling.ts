import type { InferencePath } from "@seatrial/domain"
import { Effect } from "effect"
import type { EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import { unexpected } from "./Check.ts"
import { post } from "./pathBodies.ts"
import { converse, type SuiteSubject } from "./SuiteSubject.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"

interface Drawn {
  readonly path: InferencePath
  /** The body of a greedy request with at most this many tokens. */
  readonly bodyOf: (question: string, tokens: number) => object
  /** The text of an answer, including reasoning. */
  readonly saidIn: (received: string) => string
}

const cuts = [
  ["top_p", 1e-6],
  ["top_k", 1]
] as const

const max_tokens = 24
const times = [1, 2, 3]

/** Sends the question with more fields. Null if the answer has a form that a parser of the engine rejects. */
type Draw = (more: object) => Effect.Effect<string | null, EngineUnreachable>

/** A way to send the question, and its greedy answer. */
interface Route {
  readonly draw: Draw
  readonly greedily: string
}

const drawable = (request: Effect.Effect<string, EngineUnreachable | Unexpected>) => Effect.catchTag(request, "Unexpected", () => Effect.succeed(null))

/** Whether three draws of the chat route differ from its greedy answer. */
const chatVaries = Effect.fnUntraced(function* ({ draw, greedily }: Route) {
  for (const seed of times) if ([null, greedily].includes(yield* draw({ temperature: 2, seed }))) return false
  return true
})

/** One of eight draws of the path differs from its greedy answer. */
const pathVaries = Effect.fnUntraced(function* ({ draw, greedily }: Route) {
  for (let count = 0; count < 8; count++) if ((yield* draw({ temperature: 2 })) !== greedily) return
  return yield* unexpected("temperature 2 is greedy")
})

/** If a cut makes the chat route greedy, it makes the path greedy. */
const cutsLikeChat = Effect.fnUntraced(function* (chat: Route, path: Route, [name, value]: (typeof cuts)[number]) {
  const cut = { temperature: 2, [name]: value }
  const answers = yield* Effect.forEach(times, (seed) => chat.draw({ ...cut, seed }))
  if (answers.some((answer) => answer !== chat.greedily)) return
  const drawn = yield* Effect.forEach(times, () => path.draw(cut))
  if (drawn.every((answer) => answer !== null && answer !== path.greedily && answer !== chat.greedily))
    return yield* unexpected(`${name} ${value} is not greedy`)
})

/**
 * A path obeys its sampling settings at least as well as the chat route. If three draws of the chat route differ from
 * the greedy answer, one of eight draws of the path must. If three draws that are cut to the likeliest token equal it,
 * one of three draws of the path must.
 */
export const drawsLikeChat = Effect.fnUntraced(function* (subject: SuiteSubject, { bodyOf, path, saidIn }: Drawn) {
  // A question with many possible answers, short enough to be sent often.
  const question = `Tell a long story about ${(yield* vocabularyWords(subject, path, 2)).join(" and ")}.`
  const body = bodyOf(question, max_tokens)
  const byChat: Draw = (more) =>
    drawable(
      Effect.map(converse(subject, [{ role: "user", content: question }], { max_tokens, ...more }), ({ content, reasoning }) => `${reasoning}${content}`)
    )
  const byPath: Draw = (more) => drawable(Effect.map(post(subject, path, { ...body, ...more }), saidIn))
  const [chatAnswer, pathAnswer] = [yield* byChat({}), yield* byPath({})]
  // Some engines report nothing of reasoning that was cut.
  if (chatAnswer === null || pathAnswer === null || pathAnswer.trim() === "") return
  const [chatRoute, pathRoute]: readonly [Route, Route] = [
    { draw: byChat, greedily: chatAnswer },
    { draw: byPath, greedily: pathAnswer }
  ]
  if (!(yield* chatVaries(chatRoute))) return
  yield* pathVaries(pathRoute)
  const served: ReadonlyArray<string> = subject.capabilities.supported_parameters_by_endpoint[path] ?? []
  for (const cut of cuts.filter(([name]) => served.includes(name))) yield* cutsLikeChat(chatRoute, pathRoute, cut)
})
