import { checkedTopTokens, type TrialMetrics } from "@seatrial/domain"
import { Effect } from "effect"
import { labelsOf } from "../gauge.ts"
import { promptTokens } from "../promptTokens.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import type { Reading } from "./readAnswer.ts"
import { goOn, promptOf, type SuiteSubject } from "./SuiteSubject.ts"
import { saltOf, seedOf } from "./saltOf.ts"
import { drawnTexts } from "./texts/drawnTexts.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/**
 * The difference, in nats, between the log-probability of the first token of an answer and the value that another
 * answer to the same prompt reports for it; infinite if the other answer does not list it among the likeliest tokens.
 * If two tokens are nearly tied, it does not matter which one was chosen.
 */
const firstShift = (one: Reading, other: Reading): number => {
  const token = one.first?.token
  const elsewhere = token === undefined || token === other.first?.token ? (other.logprobs?.[0] ?? 0) : other.first?.top.get(token)
  return elsewhere === undefined ? Number.POSITIVE_INFINITY : Math.abs((one.logprobs?.[0] ?? 0) - elsewhere)
}

/**
 * Whether the engine reports that its prefix cache is off, and the length of a cache block, or 0 if it reports none.
 * Prompts shorter than one block are never cached, and some engines report cached tokens only if there are some.
 */
const readCacheConfig = (metrics: string, config: TrialMetrics["cacheConfig"]) => {
  if (config === null) return { isOff: false, block: 0 }
  const labels = labelsOf(metrics, config.name) ?? ""
  const [, block = 0] = new RegExp(`${config.blockSizeLabel}="(\\d{1,9})"`).exec(labels) ?? []
  return { isOff: labels.includes(config.prefixCacheOff), block: Number(block) }
}

/** Tokens that follow the longest prompt: another end, and an answer. */
const roomBehind = 24

/**
 * Lengths of prompts around the end of a cache block: a multiple of it, one token more, and one and a half blocks more. Never
 * less than `least`. If the context has no room for two blocks, one block and a token; empty if it has no room for that.
 */
export const cachedLengths = (block: number, least: number, maxContext: number): ReadonlyArray<number> => {
  // The length of blocks may be unknown; then it is most likely this one.
  const size = block === 0 ? 16 : block
  const multiple = size * Math.max(2, Math.ceil(least / size))
  const lengths = [multiple, multiple + 1, multiple + Math.max(2, Math.floor(1.5 * size))].filter((length) => length + roomBehind <= maxContext)
  return lengths.length > 0 ? lengths : [size + 1].filter((length) => length + roomBehind <= maxContext)
}

/** Makes prompts of a length from texts of this trial, or of any tokens if the texts are too short or not encoded. */
const promptSource = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const words = yield* vocabularyWords(subject, "cache_hit_equal", 24)
  const prose = yield* promptOf(subject, `${words.join(" ")}. ${drawnTexts(seedOf(subject.seed, "cache_hit_equal"), 2).join(" ")}`)
  return (length: number, seed: number): ReadonlyArray<number> =>
    typeof prose === "string" || prose.length < length + seed ? promptTokens(subject.vocabSize, length, subject.seed + seed) : prose.slice(seed, seed + length)
})

const fields = { max_tokens: 8, ignore_eos: true, logprobs: checkedTopTokens }

/** The cached prefix of these tokens is not used under another salt, nor by the base of an adapter. */
const isIsolated = Effect.fnUntraced(function* (subject: SuiteSubject, ids: ReadonlyArray<number>) {
  const cachedFor = (change: Partial<SuiteSubject>) =>
    Effect.map(goOn({ ...subject, ...change }, ids, { ...fields, max_tokens: 1 }), ({ cached }) => cached ?? 0)
  const other = yield* cachedFor({ salt: saltOf(subject.salt, "other") })
  if (other > 0) return yield* unexpected(`${ids.length} tokens: ${other} cached under another salt`)
  if (subject.baseName === undefined) return
  // With an adapter the same tokens have other keys and values.
  const base = yield* cachedFor({ servedName: subject.baseName })
  if (base > 0) return yield* unexpected(`${ids.length} tokens: the base took ${base} tokens from the adapter's cache`)
})

/** Sends a prompt twice. The second answer uses the cache and begins with the same token. */
const repeatPrompt = Effect.fnUntraced(function* (subject: SuiteSubject, ids: ReadonlyArray<number>, block: number) {
  const fresh = yield* goOn(subject, ids, fields)
  const again = yield* goOn(subject, ids, fields)
  const hits = again.cached ?? 0
  // For recurrent layers an engine may keep only the state at the last end of a block. If the prompt ends there too, that
  // state is of no use, because the last token is always computed.
  const mustHit = block <= 1 || ids.length % block !== 0
  if (hits === 0 && ids.length > block && mustHit) return yield* unexpected(`${ids.length} tokens: none reported as cached the second time`)
  const shift = firstShift(again, fresh)
  if (shift > thresholds.cachedFirst) return yield* unexpected(`${ids.length} tokens: the first token is ${shift.toFixed(3)} nats off when cached`)
  yield* isIsolated(subject, ids)
  return { hits, isChanged: fresh.content !== again.content }
})

/** Prompts with a shared beginning and another end: only the beginning is cached. */
const anotherEnd = Effect.fnUntraced(function* (subject: SuiteSubject, shared: ReadonlyArray<number>) {
  for (const [prefix, added] of [
    [shared.length - 8, 16],
    // Only the last token of a block differs.
    [shared.length - 1, 2]
  ] as const) {
    const ended = [...shared.slice(0, prefix), ...promptTokens(subject.vocabSize, added, seedOf(subject.seed, "another end"))]
    const warm = yield* goOn(subject, ended, fields)
    const cold = yield* goOn({ ...subject, salt: saltOf(subject.salt, "cold") }, ended, fields)
    const shift = firstShift(warm, cold)
    if (shift > thresholds.cachedFirst)
      return yield* unexpected(`a cached beginning with another end: the first token is ${shift.toFixed(3)} nats off when cached`)
  }
})

/**
 * A prompt of two cached prompts: the beginning of one, and the end of the other. The cached end belongs to another
 * beginning, so only the beginning may come from the cache.
 */
const anotherBeginning = Effect.fnUntraced(function* (subject: SuiteSubject, shared: ReadonlyArray<number>, block: number) {
  const size = block === 0 ? 16 : block
  const from = size * Math.floor(shared.length / size / 2)
  const beginning = promptTokens(subject.vocabSize, shared.length, subject.seed + 1)
  for (const prompt of [shared, beginning]) yield* goOn(subject, prompt, { ...fields, max_tokens: 1 })
  const mixed = [...beginning.slice(0, from), ...shared.slice(from), ...beginning.slice(0, 2)]
  const warm = yield* goOn(subject, mixed, fields)
  if ((warm.cached ?? 0) > from) return yield* unexpected(`${warm.cached} tokens reported as cached, but only ${from} were sent before after this beginning`)
  const shift = firstShift(warm, yield* goOn({ ...subject, salt: saltOf(subject.salt, "cold") }, mixed, fields))
  if (shift > thresholds.cachedFirst) return yield* unexpected(`a cached end with another beginning: the first token is ${shift.toFixed(3)} nats off`)
})

/** Values from the prefix cache equal computed values, and the cache is not shared between salts. */
export const cacheHitEqual: TrialCheck = {
  name: "cache_hit_equal",
  class: "required",
  purpose: "Answers are the same with and without the prefix cache, and another salt does not share it",
  limitSeconds: seconds(45),
  skipped: ({ offers }) => (offers.prefixCache ? null : "no prefix cache"),
  run: Effect.fnUntraced(function* (subject) {
    const config = readCacheConfig((yield* subject.client.get("/metrics")).text, subject.metrics.cacheConfig)
    if (config.isOff) return yield* new NotApplicable({ reason: "prefix cache off" })
    const block = config.block > 0 ? config.block : (subject.offers.cacheBlock ?? 0)
    const promptOfLength = yield* promptSource(subject)
    const lengths = cachedLengths(block, extentOf(subject.parameters).leastCached, subject.maxContext)
    if (lengths.length === 0) return yield* new NotApplicable({ reason: `blocks of ${block} tokens` })
    const repeated = yield* Effect.forEach(lengths, (length, index) => repeatPrompt(subject, promptOfLength(length, index * 7), block))
    const changed = repeated.filter(({ isChanged }) => isChanged).length
    const most = subject.batchInvariant ? 0 : thresholds.cachedOthers
    if (changed > most) return yield* unexpected(`${changed} of ${lengths.length} answers change when cached`)
    yield* anotherEnd(subject, promptOfLength(lengths[0] ?? 64, 0))
    yield* anotherBeginning(subject, promptOfLength(lengths[0] ?? 64, 0), block)
    const hits = repeated.reduce((sum, each) => sum + each.hits, 0)
    return `${lengths.length + 3} prompts from ${lengths[0]} tokens on, ${hits} tokens from the cache`
  })
}
