import { mostTrialRequests } from "@seatrial/domain"

/** Parameters below which a model is tried with shorter texts and fewer of them: of no use to anybody but for tests, and computed by a processor. */
export const tinyParameters = 5_000_000

/** How much is asked of a model: counts of prompts and tokens. */
export interface Extent {
  readonly likelihoodTokens: number
  readonly goldenQuestions: number
  readonly saneTokens: number
  readonly repeatedPrompts: number
  readonly topTokens: number
  readonly decodedPrompts: number
  readonly decodedTokens: number
  /** Tokens at most of one answer that is decoded for longer. */
  readonly longestDecoded: number
  readonly cachedLengths: ReadonlyArray<number>
  readonly batch: number
  readonly streamedPrompts: number
  readonly seeds: number
  readonly pressureRequests: number
  readonly needleTokens: number
  readonly schemas: number
  /** Tokens at most of an answer that is any JSON object. */
  readonly jsonTokens: number
}

const whole: Extent = {
  likelihoodTokens: 256,
  goldenQuestions: 24,
  saneTokens: 128,
  repeatedPrompts: 16,
  topTokens: 32,
  decodedPrompts: 8,
  decodedTokens: 64,
  longestDecoded: 128,
  cachedLengths: [512, 513, 600],
  batch: 32,
  streamedPrompts: 6,
  seeds: 16,
  pressureRequests: mostTrialRequests,
  needleTokens: 1_000,
  schemas: 6,
  jsonTokens: 200
}

const tiny: Extent = {
  likelihoodTokens: 64,
  goldenQuestions: 5,
  saneTokens: 32,
  repeatedPrompts: 4,
  topTokens: 16,
  decodedPrompts: 2,
  decodedTokens: 24,
  longestDecoded: 24,
  cachedLengths: [64, 65],
  batch: 6,
  streamedPrompts: 3,
  seeds: 6,
  pressureRequests: 8,
  needleTokens: 192,
  schemas: 3,
  jsonTokens: 48
}

/** What is asked of a model of so many parameters. */
export const extentOf = (parameters: number): Extent => (parameters < tinyParameters ? tiny : whole)

/**
 * Every limit that the suite judges by. A change of one raises the suite's version. Log-probabilities are in nats, shares between 0 and 1.
 */
export const thresholds = {
  /** Milliseconds for one token up to which the rows' and the suite's limits hold as they are; beyond it they stretch in proportion, four times at most. */
  usualTokenMillis: 20,
  /** Models below `tinyParameters` have it always: a processor computes them, which others use too. */
  mostStretch: 4,
  /** Seconds after which only required rows are begun, and after which none is. */
  budgetSeconds: 600,
  hardSeconds: 900,
  /** Required rows that may run out of time while the engine computes, before the rest is left out: it is too slow for a verdict. */
  mostLate: 2,
  /** How much longer both are for a model that thinks before each answer, whatever it is told: some 35 thoughts of `thinkingTokens` one after the other. */
  thinkersLonger: 3,
  /** The same where it can be told not to, which some paths cannot say: some 15 thoughts. */
  switchedLonger: 2,
  /** Values of each tensor that are looked at. */
  loadedValues: 100,
  /** Share of ln(vocabulary) that the mean of the texts may have. */
  likelihoodShare: 0.5,
  /** How much worse a text must be when its words are shuffled, by token. */
  shuffledWorse: 0.5,
  /** How far an earlier trial of the same may be from this one: in the mean, and token by token. */
  shift: { mean: 0.01, absolute: 0.05 },
  /** The same of an earlier trial of another version of the engine, whose kernels round otherwise. */
  otherEngineShift: { mean: 0.05, absolute: 0.25 },
  /** What a log-probability may be above zero: rounding of the engine's own. */
  aboveZero: 0.001,
  /** Right answers expected, as shares of those asked: of models from 3 billion parameters on, and from half a billion on. Nothing is expected of smaller ones. */
  golden: [
    { parameters: 3_000_000_000, share: 0.75 },
    { parameters: 500_000_000, share: 10 / 24 }
  ],
  /** Characters of the asked script, digits, signs and blanks. */
  printable: 0.85,
  /** Share of the commonest run of five words. */
  commonestRun: 0.25,
  commonestRunOfText: 0.6,
  /** One prompt in so many may change between runs alone. */
  steadyOf: 8,
  /** Fingerprints kept at most, and the fewest that mean anything. */
  fingerprints: 8,
  leastFingerprints: 4,
  fingerprintTokens: 64,
  /** Nats between the two likeliest tokens where the answer is sure: logits of 16 bits lie up to a quarter apart, and two runs of a kernel nearer than that. */
  sureBy: 0.5,
  /** How far below the best one a chosen token may be: rounding. */
  belowBest: 0.0005,
  probabilitySum: 1.001,
  decodeMean: 0.05,
  decodeWorst: 1.5,
  cachedFirst: 0.1,
  /** Prompts whose text may be another one when cached: near ties. */
  cachedOthers: 1,
  /** Share of answers that have to be the same among others as alone. */
  batchSame: 0.9,
  /** Seconds in which one model, or two in one engine, answer the items of adapters' fidelity. */
  fidelitySeconds: 150,
  /** Seconds that pressure on the KV cache may take, and by how much it is overfilled. */
  pressureSeconds: 60,
  pressure: 1.3,
  /** Different answers among those of different seeds. */
  differentSeeds: 3,
  /** By how much at most one of two tokens is preferred until it alone is said, and how closely that is found. */
  mostPreferred: 32,
  preference: 0.25,
  /** Keys expected of three at the shortest length: of models from half a billion parameters on, and of smaller ones. */
  needle: { parameters: 500_000_000, found: 3, foundBySmaller: 1 },
  /** Seconds in which aborted requests have to be gone, the share of their tokens that may be generated, and how much the next first token may be later. */
  abortSeconds: 5,
  abortTokens: 0.5,
  abortSlower: 2,
  abortSlowerMillis: 250,
  abortCacheUse: 0.01,
  /** Tokens in which an answer of one word has to end. */
  wordTokens: 64,
  /** Tokens of a thought that is waited for, where a model thinks before it answers. */
  thinkingTokens: 2_048
} as const
