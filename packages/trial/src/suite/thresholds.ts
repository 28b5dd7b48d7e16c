import { mostTrialRequests } from "@seatrial/domain"

/**
 * Models with fewer parameters get fewer and shorter texts. They are useful only for tests, and a CPU computes them.
 */
export const tinyParameters = 5_000_000

/** The amount of work for a model: numbers of prompts and tokens. */
export interface Extent {
  readonly likelihoodTokens: number
  readonly goldenQuestions: number
  readonly saneTokens: number
  readonly repeatedPrompts: number
  readonly topTokens: number
  readonly decodedPrompts: number
  readonly decodedTokens: number
  /** Number of texts that only one trial has. */
  readonly drawnTexts: number
  /** Number of texts that are spread over the context. */
  readonly farTexts: number
  /** Maximum number of tokens of a long answer. */
  readonly longestDecoded: number
  /** Tokens of the two answers whose later tokens are compared by window. */
  readonly longAnswer: number
  /** Minimum number of tokens of a prompt that is cached. */
  readonly leastCached: number
  readonly batch: number
  /** Maximum number of requests in the largest batch, and the tokens of each answer. */
  readonly largeBatch: number
  readonly batchTokens: number
  readonly streamedPrompts: number
  /** Number of drawn tokens for each setting on each way. */
  readonly draws: number
  /** Number of first tokens that are drawn at another temperature, whole and streamed each, on a path without a bias. */
  readonly pathDraws: number
  /** Number of tokens of the text after which they are drawn. */
  readonly drawnAfter: number
  readonly seeds: number
  readonly pressureRequests: number
  readonly needleTokens: number
  readonly schemas: number
  /** Maximum number of tokens of an answer that is any JSON object. */
  readonly jsonTokens: number
}

const regular: Extent = {
  likelihoodTokens: 256,
  goldenQuestions: 24,
  saneTokens: 128,
  repeatedPrompts: 16,
  topTokens: 32,
  decodedPrompts: 8,
  decodedTokens: 64,
  drawnTexts: 24,
  farTexts: 8,
  longestDecoded: 128,
  longAnswer: 512,
  leastCached: 512,
  batch: 32,
  largeBatch: mostTrialRequests,
  batchTokens: 24,
  streamedPrompts: 6,
  draws: 240,
  pathDraws: 960,
  drawnAfter: 65,
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
  // The difference varies too much between texts of a tiny model: it decided wrongly in 2 of 14 sound trials.
  drawnTexts: 0,
  farTexts: 4,
  longestDecoded: 24,
  longAnswer: 128,
  leastCached: 64,
  batch: 6,
  largeBatch: 12,
  batchTokens: 12,
  streamedPrompts: 3,
  draws: 24,
  pathDraws: 24,
  drawnAfter: 33,
  seeds: 6,
  pressureRequests: 16,
  needleTokens: 192,
  schemas: 3,
  jsonTokens: 48
}

/** The amount of work for a model with this many parameters. */
export const extentOf = (parameters: number): Extent => (parameters < tinyParameters ? tiny : regular)

/**
 * All limits of the suite. A change of one raises the suite version. Log-probabilities are in nats, shares between 0
 * and 1.
 */
export const thresholds = {
  /**
   * Milliseconds per token up to which the time limits apply unchanged. Beyond it they are extended in proportion, up
   * to `mostStretch` times.
   */
  usualTokenMillis: 20,
  /** Always applies to models below `tinyParameters`: a CPU computes them, which other programs use too. */
  mostStretch: 4,
  /** Seconds after which only required checks start, and after which no check starts. */
  budgetSeconds: 600,
  hardSeconds: 900,
  /**
   * Number of required checks that may time out while the engine computes. Then the engine is too slow for a verdict,
   * and the rest are skipped.
   */
  mostLate: 2,
  /**
   * The factor for both limits if reasoning cannot be turned off: time for about 35 reasoning passages of
   * `thinkingTokens` in sequence.
   */
  thinkersLonger: 3,
  /** The factor if reasoning can be turned off, but not on every path: time for about 15 passages. */
  switchedLonger: 2,
  /** Number of compared values per tensor. */
  loadedValues: 100,
  /** The maximum mean of the texts, as a share of ln(vocabulary). */
  likelihoodShare: 0.5,
  /** Minimum increase in nats per token if the words of a text are shuffled. */
  shuffledWorse: 0.5,
  /** Maximum distance from an earlier trial: of the mean, and token by token. */
  shift: { mean: 0.01, absolute: 0.05 },
  /** The same for a trial of another engine version, whose kernels round differently. */
  otherEngineShift: { mean: 0.05, absolute: 0.25 },
  /**
   * Texts anywhere in the context: tokens of a window, tokens before a text near the start, the longest prompt (the
   * operator decodes its answer within its own heap), and how many nats a token less likely than near the start a
   * window may be. Measured: SmolLM2-135M up to 0.17 in 8,192 tokens, and from 1.83 on with positions that are wrong by
   * a factor of 1.5 from the middle on, or of 4 from 256 on; the sample models up to 1.01 in 1,024 tokens with 34
   * fillings.
   */
  farWindow: 64,
  farBefore: 64,
  farLongest: 131_072,
  farWorse: 1.5,
  /**
   * Maximum distance from the reference in each window of positions: of the mean, token by token, and of one token.
   */
  reference: { mean: 0.012, absolute: 0.08, worst: 2 },
  /** The same if the settings of the deployment quantize weights or cache, or the files are quantized. */
  reducedReference: { mean: 0.05, absolute: 0.3, worst: 4 },
  /** How many of the reference's drawn sequences a trial compares, and their limits, also for reduced precision. */
  referenceDrawn: 8,
  drawnReference: { mean: 0.02, absolute: 0.15, worst: 3 },
  reducedDrawnReference: { mean: 0.1, absolute: 0.6, worst: 8 },
  /** Where the windows begin; the last one ends at the last number. */
  referenceWindows: [0, 64, 128, 256, 512],
  /** How far above zero a log-probability may be, because of the engine's rounding. */
  aboveZero: 0.001,
  /**
   * Expected shares of right answers: for models with at least 3 billion parameters, and with at least half a billion.
   * Nothing is expected of smaller models.
   */
  golden: [
    { parameters: 3_000_000_000, share: 0.75 },
    { parameters: 500_000_000, share: 10 / 24 }
  ],
  /** Minimum share of characters of the expected script, digits, punctuation and white space. */
  printable: 0.85,
  /** Maximum share of the most common run of five words. */
  commonestRun: 0.25,
  commonestRunOfText: 0.6,
  /** One of this many prompts may change between runs that are alone on the engine. */
  steadyOf: 8,
  /** The maximum number of fingerprints, and the minimum that is meaningful. */
  fingerprints: 8,
  leastFingerprints: 4,
  fingerprintTokens: 64,
  /**
   * Difference in nats between the two likeliest tokens from which a step is certain: logits of 16 bits may be a
   * quarter apart, and two runs of a kernel less than that.
   */
  sureBy: 0.5,
  /** How far below the best token a chosen token may be, because of rounding. */
  belowBest: 0.0005,
  probabilitySum: 1.001,
  decodeMean: 0.05,
  decodeWorst: 1.5,
  /**
   * The longest prompt after which generated tokens are compared (it is computed twelve times), and their largest mean
   * difference, at most `longMean`: `decodeMean`, or this part if an engine computes exactly, and a multiple of what the
   * same engine differs by after short prompts. Rounding would hide a lost part of the prompt; an exact engine hides
   * nothing.
   */
  longPrompt: 8_192,
  longPromptMean: 0.01,
  longRounding: 3,
  /**
   * Windows of a long answer in tokens, and the largest mean difference in a window: without signs if the answer is
   * greedy, with signs if it was drawn. Not measured on a GPU. Rounding of 16 bits moved tokens of texts by 0.04 to 0.05 on
   * processors, in either direction, and likely tokens less.
   */
  longWindow: 64,
  longMean: 0.1,
  cachedFirst: 0.1,
  /** Number of prompts whose text may change if cached, because of near ties. */
  cachedOthers: 1,
  /** Minimum share of answers that are the same in a batch as alone. */
  batchSame: 0.9,
  /** Maximum share of answers in a batch that are more like answers to other seeds. */
  foreignSeeds: 0.25,
  /** Milliseconds in which an engine that answers one request after the other must finish the largest batch. */
  largeBatchMillis: 15_000,
  /** Number of texts that the base of an adapter scores at the same time. */
  batchedTexts: 8,
  /** Seconds in which one model, or two in one engine, answer the items of the fidelity suite. */
  fidelitySeconds: 150,
  /**
   * Time limit in seconds of the check that overfills the KV cache, the share of it in which all prompts must be
   * processed, the factor by which the cache is overfilled, and the number of answers that are read again.
   */
  pressureSeconds: 120,
  pressureShare: 0.6,
  pressure: 1.3,
  pressureJudged: 4,
  /** The largest distance of the lead of a counted token from the expected one, as a share of the answer. */
  leadApart: 0.125,
  /**
   * How often all counts of drawn tokens together may alarm although the engine is right. Each count gets an equal part.
   */
  drawAlarm: 0.001,
  /** How many nats the logit of a share may be off: 16-bit logits are up to an eighth apart. */
  drawTolerance: 0.1,
  /** The same for a token after the first one on an engine that rounds: between a prompt and a decoding step, not measured on a GPU. */
  laterDrawTolerance: 0.5,
  /** How many times as many draws the temperature gets, on all ways together: its faults are the smallest. */
  temperatureDraws: 8,
  /**
   * Draws on paths without a bias: the least share of words that a cut must remove, the least share of the last token
   * before it (if rounding moves each logit by an eighth, up or down, a sum of shares moves by 0.063 at most, and half of
   * the share is room on each side), and the least information of a draw about the logarithm of the temperature.
   */
  leastRemoved: 0.05,
  leastLastShare: 0.15,
  leastInformation: 0.1,
  /** The same draws: how many nats the listed words of a cached prompt may be off their scores, twice the step of 16-bit logits. */
  mostUncached: 0.25,
  /** Minimum number of different answers to requests with different seeds. */
  differentSeeds: 3,
  /** The largest preference for one of two tokens that is tried, and the precision of the search. */
  mostPreferred: 32,
  preference: 0.25,
  /**
   * Minimum number of keys found of three at the shortest length: for models with at least half a billion parameters,
   * and for smaller ones.
   */
  needle: { parameters: 500_000_000, found: 3, foundBySmaller: 1 },
  /**
   * Seconds in which aborted requests must end, the maximum share of their tokens that may be generated, and the
   * maximum delay of the next first token.
   */
  abortSeconds: 5,
  abortTokens: 0.5,
  abortSlower: 2,
  abortSlowerMillis: 250,
  abortCacheUse: 0.01,
  /** Token limit within which an answer of one word must end. */
  wordTokens: 64,
  /** Token limit for the reasoning before an answer. */
  thinkingTokens: 2_048
} as const
