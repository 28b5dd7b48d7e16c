import { samplingDefaults } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { NotApplicable, type TrialCheck, unexpected } from "./Check.ts"
import { type KnownStart, knownStart, startOf } from "./draws/firstTokens.ts"
import { isWord, type Split } from "./draws/firstWords.ts"
import { claims, decodeMessage, decodeResponseText, messageStreamText, responseStreamText } from "./pathBodies.ts"
import { dialects, type Path } from "./pathCalls.ts"
import { drawnSlower, mayThink, type SuiteSubject, withoutThinking } from "./SuiteSubject.ts"
import { type Count, judgeCounts } from "./samplingDistribution.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/** Limits that leave one token: an engine may generate fewer tokens than the limit of this path. */
const limits = [1, 2, 3]
const mostAtOnce = 32
const greedily = { temperature: 0, top_p: 1, top_k: -1 }

const bodies = {
  "/v1/responses": (question: string, limit: number) => ({ input: question, max_output_tokens: limit, repetition_penalty: 1, store: false }),
  "/v1/messages": (question: string, limit: number) => ({ messages: [{ role: "user", content: question }], max_tokens: limit })
} satisfies Record<Path, (question: string, limit: number) => object>

const streamedText = { "/v1/responses": responseStreamText, "/v1/messages": messageStreamText } satisfies Record<Path, (received: string) => string>

/** Number of generated tokens, as the path reports it. */
const generatedIn = {
  "/v1/responses": (received: string) => Option.getOrNull(decodeResponseText(received))?.usage.output_tokens ?? null,
  "/v1/messages": (received: string) => Option.getOrNull(decodeMessage(received))?.usage.output_tokens ?? null
} satisfies Record<Path, (received: string) => number | null>

/** Sends the question of a trial to a path, and returns status and answer. */
const askOn = (subject: SuiteSubject, path: Path, question: string, limit: number, fields: object) =>
  subject.client.post(
    path,
    JSON.stringify({
      model: subject.servedName,
      ...bodies[path](question, limit),
      ...withoutThinking(subject),
      ...(subject.offers.unsalted?.includes(path) === true ? {} : { cache_salt: subject.salt }),
      ...fields
    })
  )

/** The limit with which an answer has one token. The path must see the prompt of the chat route, and show its first token. */
const limitOf = Effect.fnUntraced(function* (subject: SuiteSubject, path: Path, { listed, prompt, question }: KnownStart) {
  const likeliest = listed.filter(({ logprob }) => (listed[0]?.logprob ?? 0) - logprob < thresholds.sureBy).map(({ text }) => text)
  for (const limit of limits) {
    const { status, text } = yield* askOn(subject, path, question, limit, greedily)
    if (status !== 200 || generatedIn[path](text) !== 1) continue
    if (dialects[path].inputOf(text) !== prompt.length) return yield* new NotApplicable({ reason: "another prompt than on the chat route" })
    const streamed = mayThink(subject) ? [] : [streamedText[path]((yield* askOn(subject, path, question, limit, { ...greedily, stream: true })).text)]
    const firsts = [dialects[path].textOf(text), ...streamed].map((each) => each.trim())
    if (firsts.some((each) => !likeliest.includes(each))) return yield* new NotApplicable({ reason: "its first token is not that of the chat route" })
    return limit
  }
  return yield* new NotApplicable({ reason: "no answer of one token" })
})

/** The counts of drawn texts. Texts that are no words, such as the empty text of an end token, are not counted. */
export const countsOf = (split: Split, way: string, drawn: ReadonlyArray<string>): ReadonlyArray<Count> => {
  const { chance, counted, field, isClosed, likely } = split
  const words = drawn.filter(isWord)
  const expected = words.filter((word) => counted.has(word))
  const shares: Count = { field, cell: 0, way, hits: expected.filter((word) => likely.has(word)).length, draws: expected.length, chance }
  return isClosed ? [shares, { ...shares, cell: 1, hits: words.length - expected.length, draws: words.length, chance: 0 }] : [shares]
}

/** Draws the first token often, and counts the words. */
const countSplit = Effect.fnUntraced(function* (subject: SuiteSubject, path: Path, question: string, limit: number, split: Split, streamed: boolean) {
  const { pathDraws } = extentOf(subject.parameters)
  const count = split.field === "temperature" ? pathDraws : pathDraws / 4
  const draw = Effect.fnUntraced(function* () {
    const { status, text } = yield* askOn(subject, path, question, limit, { ...split.fields, ...(streamed ? { stream: true } : {}) })
    if (status !== 200) return yield* unexpected(`${path}: HTTP ${status} for a drawn token`, { status })
    return (streamed ? streamedText[path] : dialects[path].textOf)(text).trim()
  })
  const drawn = yield* Effect.all(
    Array.from({ length: count }, () => draw()),
    { concurrency: Math.min(mostAtOnce, subject.slots) }
  )
  return { drawn: drawn.length, counts: countsOf(split, streamed ? "streamed" : "whole", drawn) }
})

const decodeDefaults = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** Whether the engine may apply settings that this path cannot turn off. */
const hasOwnDefaults = ({ offers, repository }: SuiteSubject): boolean => {
  const { min_p = 0, repetition_penalty = 1 } = samplingDefaults(
    Option.getOrElse(decodeDefaults(repository.small.get("generation_config.json") ?? ""), () => ({}))
  )
  return offers.ownDefaults === true || min_p !== 0 || repetition_penalty !== 1
}

/** A reason to draw nothing on these paths, or null. */
const undrawn = (subject: SuiteSubject): string | null => {
  if (subject.offers.fixedUnseeded === true) return "requests without a seed draw alike"
  return hasOwnDefaults(subject) ? "sampling defaults that no request of this path turns off" : null
}

/** Reads the first tokens once for both paths, and again at each second attempt. */
type Knows = (subject: SuiteSubject, isAgain: boolean) => ReturnType<typeof knownStart>

const drawsOn = (name: string, path: Path, knows: Knows): TrialCheck => {
  let runs = 0
  return {
    name,
    class: "capability",
    usesConfirmedFeatures: true,
    purpose: `On ${path} the first token has the shares that its log-probabilities, temperature, top_p and top_k give it`,
    limitSeconds: (subject) => 120 * drawnSlower(subject),
    skipped: (subject) => claims(path)(subject) ?? undrawn(subject),
    run: Effect.fnUntraced(function* (subject) {
      const start = yield* knows(subject, ++runs > 1)
      if (start === null) return yield* new NotApplicable({ reason: "no first token of known log-probability" })
      const limit = yield* limitOf(subject, path, start)
      const offered: ReadonlySet<string> = new Set(subject.capabilities.supported_parameters_by_endpoint[path] ?? [])
      const splits = start.splits.filter(({ field }) => offered.has(field))
      if (splits.length === 0) return yield* new NotApplicable({ reason: "draws of the first token tell too little" })
      // A parser of reasoning may keep a first token back that could begin a mark.
      const ways = splits.flatMap((split) => (mayThink(subject) ? [false] : [false, true]).map((streamed) => ({ split, streamed })))
      const drawn = yield* Effect.forEach(ways, ({ split, streamed }) => countSplit(subject, path, start.question, limit, split, streamed))
      // A template may write the time, which changes the shares.
      const later = yield* startOf(subject, start.question)
      if (later?.prompt.join() !== start.prompt.join()) return yield* new NotApplicable({ reason: "the prompt changes" })
      const total = drawn.reduce((all, each) => all + each.drawn, 0)
      const what = splits.map(({ chance, field }) => `${field} (${chance.toFixed(2)})`).join(", ")
      return `${total} draws for ${what}: ${yield* judgeCounts(drawn.flatMap(({ counts }) => counts))}`
    })
  }
}

/**
 * Draws on paths that take no bias, after a question whose first token is uncertain. A second run with other draws
 * decides if the first one found something.
 */
export const pathDraws = (): ReadonlyArray<TrialCheck> => {
  let known: Effect.Success<ReturnType<typeof knownStart>> | undefined
  const knows: Knows = Effect.fnUntraced(function* (subject, isAgain) {
    if (known === undefined || isAgain) known = yield* knownStart(subject)
    return known
  })
  return [drawsOn("responses_draws", "/v1/responses", knows), drawsOn("messages_draws", "/v1/messages", knows)]
}
