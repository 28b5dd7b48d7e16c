/**
 * Evidence about some of the texts, or all. `total`: over all times at which a fault may have begun. `recent`: since the
 * last probe without any; at most 1 without any. `goodAt`: the time of that probe. `goodProbes`: the number of probes up
 * to it.
 */
interface Part {
  readonly total: number
  readonly recent: number
  readonly goodAt: number
  readonly goodProbes: number
}

/**
 * What the probes of one start of an engine have shown. `total` is the sum of its parts, and `recent` the largest of them.
 * `goodAt` is the earliest of the parts with recent evidence: other texts may have been good although the fault had begun.
 */
export interface Evidence extends Part {
  readonly probes: number
}

/** `goodAt`: the begin of the probes. */
export const noEvidence = (goodAt: number): Evidence => ({ total: 0, recent: 0, goodAt, goodProbes: 0, probes: 0 })

/** Whether the latest probes are evidence. The next probe then follows sooner. */
export const isDoubtful = ({ recent }: Pick<Part, "recent">): boolean => recent > 1

/** The first part is the evidence of all texts together. The others belong to single texts, in their order. */
export interface DividedEvidence extends Evidence {
  readonly parts: ReadonlyArray<Part>
}

/**
 * The largest mean difference per token of a healthy engine, nats, for each text. Two computations in 16 bits were 0.037
 * apart in the mean of the texts, and 0.045 in one of them. If their rounding were independent, they would be 0.054 and
 * 0.067 apart (docs/explanation/trial.md).
 */
const healthyNats = 0.075
/** The same as a score. */
export const healthyMean = 0.2
/** The difference from which on the score is 1. */
const wholeScale = healthyNats / healthyMean
/** The part of the stake that each probe bets. Below 1 / `healthyMean`, so that no probe loses everything. */
const bet = 4
/** The stake that each probe adds to both of its parts: of all texts, and of its text. */
const stake = 1 / 2
/** The evidence of an engine that goes on serving does not exceed what a double holds. */
const mostEvidence = 1e300

/** The mean difference per token as a number from 0 to 1. NaN, of an engine that computes no numbers, is 1. */
export const scoreOfDistance = (nats: number): number => (nats < wholeScale ? nats / wholeScale : 1)

/**
 * Evidence as it is stored, for a next leader: it is divided again as stakes are. That is a bet like each other one, so
 * the bound of `addProbe` holds.
 */
export const divide = ({ goodAt, goodProbes, probes, recent, total }: Evidence, texts: number): DividedEvidence => {
  const part = { recent, goodAt, goodProbes }
  const ofTexts = Array.from({ length: texts }, () => ({ ...part, total: ((1 - stake) * total) / texts }))
  return { ...part, total, probes, parts: [{ ...part, total: stake * total }, ...ofTexts] }
}

const multiply = (part: Part, factor: number, good: Pick<Part, "goodAt" | "goodProbes">): Part => {
  const total = Math.min(mostEvidence, (part.total + stake) * factor)
  const recent = Math.min(mostEvidence, Math.max(1, part.recent) * factor)
  if (recent > 1) return { ...part, total, recent }
  return { total, recent, goodAt: Math.max(part.goodAt, good.goodAt), goodProbes: good.goodProbes }
}

/**
 * Adds a probe. `score`: from 0 to 1. `goodAt`: since when all answers count as good if it is. Probes take the texts in turn.
 *
 * The mean score of a healthy engine is at most `healthyMean` for each text, independent of its earlier scores. Then the
 * expected factor of each probe is at most 1, so for each part and each time at which a fault may have begun, the product
 * of the factors since then is a supermartingale. `total` is their weighted sum (Shiryaev 1963, Roberts 1966): its
 * expectation after n probes is at most n, and by Ville's inequality it exceeds A within n probes with a probability of at
 * most n / A. The delay until an alarm does not depend on how long the engine was healthy before.
 *
 * The part of all texts finds a fault that most of them show. In the part of one text, the others do not hide a fault.
 */
export const addProbe = ({ parts, probes }: DividedEvidence, score: number, goodAt: number): DividedEvidence => {
  const factor = 1 + bet * (score - healthyMean)
  const text = 1 + (probes % (parts.length - 1))
  const good = { goodAt, goodProbes: probes + 1 }
  const next = parts.map((part, index) => (index === 0 || index === text ? multiply(part, factor, good) : part))
  const [since = next[0] ?? good] = next.filter(isDoubtful).toSorted((one, other) => one.goodProbes - other.goodProbes)
  return {
    total: next.reduce((sum, { total }) => sum + total, 0),
    recent: Math.max(...next.map(({ recent }) => recent)),
    goodAt: since.goodAt,
    goodProbes: since.goodProbes,
    probes: probes + 1,
    parts: next
  }
}

/** The factor by which the interval is shorter after a probe that was evidence. */
export const soonerBy = 12

const yearMillis = 365.25 * 86_400_000

/**
 * The evidence for an alarm, so that a healthy engine gets one within a year with a probability of at most `alpha`, even
 * if each of its probes follows sooner.
 */
export const alarmLevel = (alpha: number, intervalMillis: number): number => ((yearMillis / intervalMillis) * soonerBy) / alpha
