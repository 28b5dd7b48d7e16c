import { Effect } from "effect"
import { Unexpected } from "../engineAnswers.ts"
import { textPath } from "../Subject.ts"
import { NotApplicable, type TrialCheck } from "./Check.ts"
import { type Design, designsFor, expectedShares, fieldsOf } from "./draws/designs.ts"
import { drawTokens } from "./draws/drawTokens.ts"
import { type Counted, improbability } from "./draws/exactBinomial.ts"
import { type KnownDraws, type KnownToken, knownDraws } from "./draws/knownTokens.ts"
import { pairOf, penalty, repeatedChance, type Sequence, sequencesOf, subtracted } from "./draws/pairDesigns.ts"
import { drawnSlower, mayThink, type SuiteSubject, secondsOf } from "./SuiteSubject.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/** One counted result of one setting on one way. */
export interface Count extends Counted {
  readonly field: string
  /** Its place among the results of the setting. */
  readonly cell: number
  readonly way: string
  /** How many nats the logit of its share may be off, if not as many as for other counts. */
  readonly tolerance?: number
}

/** A way to draw: a path, and whether answers are streamed. */
interface Way {
  readonly known: KnownDraws
  readonly sequences: ReadonlyArray<Sequence>
  readonly streamed: boolean
  readonly name: string
  /** How many draws there are for each setting. The temperature gets more, together on all ways. */
  readonly draws: (field: string) => number
  readonly seed: number | null
}

/** The bias of a token that gets the logit 0 in a design. All other tokens of the model are far less likely. */
const raised = 60

/** Neutral values of the settings, for those that a design does not test. */
const neutral = { temperature: 1, max_tokens: 1 }

/** The tokens of a design. For the bias itself, tokens that are very differently likely without it. */
const tokensOf = ({ tokens }: KnownDraws, { field, logits }: Design): ReadonlyArray<KnownToken> => {
  if (field !== "logit_bias") return tokens.slice(0, logits.length)
  const sorted = tokens.toSorted((a, b) => a.logprob - b.logprob)
  return logits.flatMap((_, at) => sorted[Math.round((at * (sorted.length - 1)) / (logits.length - 1))] ?? [])
}

/** Draws of tokens that are not known; a right engine draws none. They are the last result of each design. */
const strangers = (drawn: ReadonlyArray<string>, known: ReadonlySet<string>) => drawn.filter((text) => !known.has(text)).length

/** The tolerance for first tokens. They are scored in a whole prompt, and drawn after a cached one. */
const firstTolerance = ({ reducesPrecision }: SuiteSubject): number => (reducesPrecision === true ? thresholds.laterDrawTolerance : thresholds.drawTolerance)

/**
 * The tolerance for tokens after the first one: their shares are computed from a prompt, and drawn from a decoding step,
 * which other kernels compute.
 */
const laterTolerance = ({ offers }: SuiteSubject): number => (offers.exactArithmetic === true ? thresholds.drawTolerance : thresholds.laterDrawTolerance)

/** Draws the tokens of a design, and counts its results. */
const countDesign = Effect.fnUntraced(function* (subject: SuiteSubject, way: Way, design: Design) {
  const tokens = tokensOf(way.known, design)
  const logit_bias = Object.fromEntries(tokens.map(({ id, logprob }, at) => [String(id), raised + (design.logits[at] ?? 0) - logprob]))
  const fields = { ...neutral, ...fieldsOf(design), logit_bias }
  const drawn = yield* drawTokens(subject, way.known.drawPath, { count: way.draws(design.field), fields, seed: way.seed, streamed: way.streamed })
  const shares = expectedShares(design)
  const hitsOf = (cell: ReadonlyArray<number>) => {
    const texts = new Set(cell.map((at) => tokens[at]?.text))
    return drawn.filter((text) => texts.has(text)).length
  }
  const outside = strangers(drawn, new Set(tokens.map(({ text }) => text)))
  return [...design.cells.map((cell, at) => [hitsOf(cell), shares[at] ?? 0] as const), [outside, 0] as const].map(
    ([hits, chance], cell): Count => ({ field: design.field, cell, way: way.name, hits, chance, draws: drawn.length, tolerance: firstTolerance(subject) })
  )
})

/** Draws two tokens with a penalty, and counts how often the first one comes again. */
const countPenalties = Effect.fnUntraced(function* (subject: SuiteSubject, way: Way, offered: ReadonlySet<string>) {
  const { tokenizer } = subject.repository
  const fieldsTested = subject.offers.latePenalties === true ? [] : subtracted.filter((field) => offered.has(field))
  const pair = fieldsTested.length === 0 ? null : yield* pairOf(subject, way.known)
  if (pair === null || tokenizer === null) return []
  const { bias, first, other } = pair
  const texts = yield* tokenizer.decode([
    [first.id, first.id],
    [first.id, other.id]
  ])
  const [again, changed] = texts.map((text) => text.trim())
  const logit_bias = { [String(first.id)]: raised + bias / 2, [String(other.id)]: raised - bias / 2 }
  return yield* Effect.forEach(fieldsTested, (field) => {
    const fields = { ...neutral, max_tokens: 2, logit_bias, [field]: penalty }
    const drawing = { count: 2 * way.draws(field), fields, seed: way.seed, streamed: way.streamed }
    return Effect.map(drawTokens(subject, way.known.drawPath, drawing), (drawn): Count => {
      const hits = drawn.filter((text) => text === again).length
      const draws = hits + drawn.filter((text) => text === changed).length
      return { field, cell: 0, way: way.name, hits, draws, chance: repeatedChance(penalty), tolerance: laterTolerance(subject) }
    })
  })
})

/** Draws several tokens, and counts how often the first one comes again after it came as often as the design says. */
const countSequence = Effect.fnUntraced(function* (subject: SuiteSubject, way: Way, { before, bias, chance, fields: tested, first, name, other }: Sequence) {
  const { tokenizer } = subject.repository
  if (tokenizer === null) return []
  const begun = Array.from({ length: before }, () => first.id)
  const [again, changed] = (yield* tokenizer.decode([
    [...begun, first.id],
    [...begun, other.id]
  ])).map((text) => text.trim())
  const logit_bias = { [String(first.id)]: raised + bias / 2, [String(other.id)]: raised - bias / 2 }
  const fields = { ...neutral, ...tested, max_tokens: before + 1, logit_bias }
  const drawn = yield* drawTokens(subject, way.known.drawPath, { count: 2 * way.draws(name), fields, seed: way.seed, streamed: way.streamed })
  const hits = drawn.filter((text) => text === again).length
  const draws = hits + drawn.filter((text) => text === changed).length
  const count: Count = { field: name, cell: 0, way: way.name, hits, chance, draws, tolerance: laterTolerance(subject) }
  return [count]
})

const offeredOn = ({ capabilities }: SuiteSubject, { drawPath }: KnownDraws): ReadonlySet<string> =>
  new Set(capabilities.supported_parameters_by_endpoint[drawPath.path] ?? [])

const countWay = Effect.fnUntraced(function* (subject: SuiteSubject, way: Way) {
  const { tokens } = way.known
  const offered = offeredOn(subject, way.known)
  // If an engine adds the bias after this penalty, the share depends on logits that no engine reports.
  const isKnown = ({ field }: Design) => offered.has(field) && (field !== "repetition_penalty" || subject.offers.biasBeforePenalties === true)
  const counts = yield* Effect.forEach(designsFor(tokens.length).filter(isKnown), (design) => countDesign(subject, way, design))
  const sequences = yield* Effect.forEach(way.sequences, (sequence) => countSequence(subject, way, sequence))
  return [...counts.flat(), ...(yield* countPenalties(subject, way, offered)), ...sequences.flat()]
})

/**
 * The same results on all ways together: a small fault of all of them shows only in many draws. The chances of sequences
 * depend on the prompt, so these are added up for each path.
 */
export const pooled = (counts: ReadonlyArray<Count>): ReadonlyArray<Count> => {
  const byResult = Map.groupBy(counts, ({ cell, chance, field }) => `${field} ${cell} ${chance}`)
  return [...byResult.values()].flatMap((same) => {
    const [first] = same
    const sum = (of: (count: Count) => number) => same.reduce((total, count) => total + of(count), 0)
    return first === undefined || same.length === 1 ? [] : [{ ...first, way: "all ways", hits: sum(({ hits }) => hits), draws: sum(({ draws }) => draws) }]
  })
}

const shown = ({ chance, draws, field, hits, way }: Count) => `${field}, ${way}: ${hits} of ${draws}, expected ${(chance * 100).toFixed(1)}%`

/** The figures if each count is as likely as it may be; fails with the least likely ones. */
export const judgeCounts = (counts: ReadonlyArray<Count>) => {
  const all = [...counts, ...pooled(counts)]
  const judged = all
    .map((count) => ({ count, chance: improbability(count, count.tolerance ?? thresholds.drawTolerance) }))
    .toSorted((a, b) => a.chance - b.chance)
  const wrong = judged.filter(({ chance }) => chance < thresholds.drawAlarm / all.length)
  const least = judged[0]?.chance ?? 1
  const figures = `${all.length} counts, the least likely one ${least.toExponential(1)}`
  return wrong.length === 0 ? Effect.succeed(figures) : Effect.fail(new Unexpected({ detail: wrong.map(({ count }) => shown(count)).join("; "), open: true }))
}

/**
 * Tokens of known log-probabilities are drawn as often as the settings demand. A second run with other draws decides if
 * the first one found something.
 */
export const samplingDistribution = (): TrialCheck => {
  let runs = 0
  return {
    name: "sampling_distribution",
    class: "required",
    purpose: "Drawn tokens have the shares that temperature, top_p, top_k, min_p, penalties and logit_bias give them",
    // On a CPU, where drawing from a large vocabulary is slow, it needed up to 150 s after the extension for slow tokens.
    limitSeconds: (subject) => secondsOf(240, 1)(subject) * drawnSlower(subject),
    run: Effect.fnUntraced(function* (subject) {
      const routes = yield* knownDraws(subject)
      // The same number on each path, so that a setting has the same shares on all ways.
      const size = Math.min(...routes.map(({ tokens }) => tokens.length))
      const paths = routes.map((known) => ({ ...known, tokens: known.tokens.slice(0, size) }))
      if (paths.length === 0) return yield* new NotApplicable({ reason: "no tokens of known log-probability" })
      const { draws } = extentOf(subject.parameters)
      const planned = yield* Effect.forEach(paths, (known) =>
        Effect.map(sequencesOf(subject, known, offeredOn(subject, known)), (sequences) => ({ known, sequences }))
      )
      // A parser of reasoning may keep a first token back that could begin a mark.
      const streams = ({ drawPath }: KnownDraws) => !mayThink(subject) || drawPath.path === textPath
      const ways = planned.flatMap((path) => (streams(path.known) ? [false, true] : [false]).map((streamed) => ({ ...path, streamed })))
      runs++
      const counts = yield* Effect.forEach(ways, ({ known, sequences, streamed }, at) =>
        countWay(subject, {
          known,
          sequences,
          streamed,
          name: `${known.drawPath.name}${streamed ? " streamed" : ""}`,
          draws: (field) => (field === "temperature" ? Math.ceil((thresholds.temperatureDraws * draws) / ways.length) : draws),
          seed: subject.offers.seeds && (streamed || subject.offers.fixedUnseeded === true) ? subject.seed + (4 * runs + at) * 1e6 : null
        })
      )
      const total = counts.flat().reduce((sum, { cell, draws: each }) => sum + (cell === 0 ? each : 0), 0)
      return `${total} draws in ${ways.length} ways: ${yield* judgeCounts(counts.flat())}`
    })
  }
}
