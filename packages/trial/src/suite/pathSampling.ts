import type { InferencePath } from "@seatrial/domain"
import { Effect } from "effect"
import { unexpected } from "./Check.ts"
import { post } from "./pathBodies.ts"
import { converse, type SuiteSubject } from "./SuiteSubject.ts"

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

/** A question with many possible answers, short enough to be sent often. */
const question = "Tell a long story."
const max_tokens = 24
const times = [1, 2, 3]

/**
 * A path obeys its sampling settings at least as well as the chat route. If three draws of the chat route differ from
 * the greedy answer, one of eight draws of the path must. If three draws that are cut to the likeliest token equal it,
 * one of three draws of the path must.
 */
export const drawsLikeChat = Effect.fnUntraced(function* (subject: SuiteSubject, { bodyOf, path, saidIn }: Drawn) {
  const body = bodyOf(question, max_tokens)
  // A drawn answer may have a form that a parser of the engine rejects.
  const byChat = (more: object) =>
    converse(subject, [{ role: "user", content: question }], { max_tokens, ...more }).pipe(
      Effect.map(({ content, reasoning }) => `${reasoning}${content}`),
      Effect.catchTag("Unexpected", () => Effect.succeed(null))
    )
  const byPath = (more: object) =>
    post(subject, path, { ...body, ...more }).pipe(
      Effect.map(saidIn),
      Effect.catchTag("Unexpected", () => Effect.succeed(null))
    )
  const [chat, greedily] = [yield* byChat({}), yield* byPath({})]
  // Some engines report nothing of reasoning that was cut.
  if (chat === null || greedily === null || greedily.trim() === "") return
  for (const seed of times) if ([null, chat].includes(yield* byChat({ temperature: 2, seed }))) return
  let varies = false
  for (let count = 0; count < 8 && !varies; count++) varies = (yield* byPath({ temperature: 2 })) !== greedily
  if (!varies) return yield* unexpected("temperature 2 is greedy")
  const served: ReadonlyArray<string> = subject.capabilities.supported_parameters_by_endpoint[path] ?? []
  for (const [name, value] of cuts.filter(([each]) => served.includes(each))) {
    const cut = { temperature: 2, [name]: value }
    const answers = yield* Effect.forEach(times, (seed) => byChat({ ...cut, seed }))
    if (answers.some((answer) => answer !== chat)) continue
    const drawn = yield* Effect.forEach(times, () => byPath(cut))
    if (drawn.every((answer) => answer !== null && answer !== greedily && answer !== chat)) return yield* unexpected(`${name} ${value} is not greedy`)
  }
})
