import { batchSize } from "./dotKernel.ts"
import type { TokenMask } from "./grammar/TokenMask.ts"
import { type KvPool, KvSequence } from "./KvCache.ts"
import type { Llama } from "./Llama.ts"
import type { EndReason, Gauges, Metrics } from "./Metrics.ts"
import { Random } from "./Random.ts"
import { logprobsOf, Sampler, type SamplingSettings, type StepLogprobs } from "./Sampler.ts"
import { type Seams, type StepPlace, sound } from "./Seams.ts"

/** One generated token; `logprobs` is null unless requested. */
export interface GeneratedToken {
  readonly id: number
  readonly logprobs: StepLogprobs | null
}

/** One request to the scheduler. Callbacks run between steps and must not block. */
interface Work {
  /** Null: the model of the scheduler. */
  readonly model: Llama | null
  readonly prompt: ReadonlyArray<number>
  /** At least 1. Prompt and answer together must not exceed the longest sequence. */
  readonly maxTokens: number
  /** The owner whose prefixes this request may share; null: none. */
  readonly shares: string | null
  readonly sampling: SamplingSettings
  /** Null: any token is allowed. */
  readonly mask: TokenMask | null
  readonly seed: number | null
  /** Tokens that end the answer. They count as generated. */
  readonly stopTokens: ReadonlySet<number>
  /** How many of the likeliest tokens to report with each token; null: no log-probabilities. */
  readonly topLogprobs: number | null
  /** The same for the tokens of the prompt, from the second one on. */
  readonly promptLogprobs: number | null
  /** Called at the first turn, with the number of prompt tokens that were found in the cache. */
  readonly onAdmitted: (cachedTokens: number) => void
  readonly onPromptToken: (token: GeneratedToken) => void
  /** Returns true if the text so far ends the answer. */
  readonly onToken: (token: GeneratedToken) => boolean
  /** Called exactly once. */
  readonly onEnd: (reason: EndReason) => void
}

interface Sequence {
  readonly work: Work
  readonly tokens: Array<number>
  readonly sampler: Sampler
  readonly cache: KvSequence
  readonly arrived: number
  computed: number
  /** Prompt tokens that were in the cache when the request was first admitted. */
  cachedTokens: number
  promptReported: number
  admitted: number
  scheduledAt: number
  firstTokenAt: number
  lastTokenAt: number
}

/** An accepted request. `abort` ends it immediately and frees its memory. It has no effect after the end. */
export interface Ticket {
  readonly abort: () => void
}

interface Limits {
  readonly maxRunning: number
  readonly maxWaiting: number
  readonly seed: number
}

const prefillSlice = 8

/** Reserves positions from the first one on. */
const reserveAll = (cache: KvSequence, first: number, count: number): boolean => {
  for (let position = first; position < first + count; position++) if (!cache.reserve(position)) return false
  return true
}

const seconds = (from: number, to: number) => (to - from) / 1000

/**
 * Runs requests in turns: one generated token or one slice of a prompt for a sequence, then the event loop, then the
 * next sequence. If the KV pool is exhausted, the most recently admitted sequence returns its blocks and is computed
 * again later, as in vLLM.
 */
export class Scheduler {
  private readonly model: Llama
  private readonly pool: KvPool
  private readonly limits: Limits
  private readonly metrics: Metrics
  private readonly seeds: Random
  private readonly seams: Seams
  private running: Array<Sequence> = []
  private waiting: Array<Sequence> = []
  private cursor = 0
  private admissions = 0
  private ticking = false
  private closed = false
  /** Number of prompt tokens that are computed at once. Some injected faults depend on the order of single tokens. */
  private readonly mostAtOnce: number

  constructor(model: Llama, pool: KvPool, metrics: Metrics, limits: Limits, seams: Seams = sound) {
    this.seams = seams
    this.mostAtOnce = [seams.model, seams.position, seams.storedKeys].every((seam) => seam === undefined) ? batchSize : 1
    this.model = model
    this.pool = pool
    this.limits = limits
    this.metrics = metrics
    this.seeds = new Random(limits.seed)
  }

  gauges(): Gauges {
    return { running: this.running.length, waiting: this.waiting.length, kvUsage: this.pool.used / this.pool.capacity }
  }

  /** Accepts a request, or returns "full" if too many requests wait. */
  submit(work: Work): Ticket | "full" {
    if (this.waiting.length >= this.limits.maxWaiting) {
      this.metrics.rejections++
      return "full"
    }
    const random = new Random(work.seed ?? this.seeds.word())
    const sequence: Sequence = {
      work,
      tokens: [...work.prompt],
      sampler: new Sampler(work.sampling, work.prompt, this.seams.random?.(random) ?? random),
      cache: new KvSequence(this.pool, work.shares ?? ""),
      arrived: performance.now(),
      computed: 0,
      cachedTokens: 0,
      promptReported: 0,
      admitted: -1,
      scheduledAt: 0,
      firstTokenAt: 0,
      lastTokenAt: 0
    }
    this.waiting.push(sequence)
    if (this.closed) this.end(sequence, "abort")
    else this.wake()
    return {
      abort: () => {
        if (this.seams.ignoresAborts !== true) this.end(sequence, "abort")
      }
    }
  }

  /** Aborts all requests, including later ones. */
  close() {
    this.closed = true
    for (const sequence of [...this.running, ...this.waiting]) this.end(sequence, "abort")
  }

  private wake() {
    if (this.ticking) return
    this.ticking = true
    const pause = this.seams.pause?.() ?? 0
    if (pause > 0) setTimeout(() => this.tick(), pause)
    else setImmediate(() => this.tick())
  }

  private tick() {
    this.ticking = false
    this.admit()
    if (this.running.length === 0) return
    this.cursor %= this.running.length
    const sequence = this.running[this.cursor]
    this.cursor++
    if (sequence !== undefined) this.turn(sequence)
    if (this.running.length + this.waiting.length > 0) this.wake()
  }

  private admit() {
    while (this.running.length < this.limits.maxRunning) {
      const next = this.waiting[0]
      if (next === undefined) return
      const blocks = Math.ceil((next.tokens.length + 1) / this.pool.shape.blockSize)
      if (this.running.length > 0 && blocks > this.pool.free) return
      this.waiting.shift()
      if (next.work.shares !== null) next.computed = next.cache.adopt(next.tokens)
      if (next.scheduledAt === 0) {
        next.scheduledAt = performance.now()
        this.metrics.cachedTokens += next.computed
        next.cachedTokens = next.computed
        next.work.onAdmitted(next.computed)
        this.metrics.queued.observe(seconds(next.arrived, next.scheduledAt))
      }
      next.admitted = this.admissions++
      this.running.push(next)
    }
  }

  private turn(sequence: Sequence) {
    const { cache, tokens, work } = sequence
    const model = work.model ?? this.model
    if (!this.prefill(sequence, model) || !this.makeRoom(sequence)) return
    const position = sequence.computed++
    const [logits] = model.step([tokens[position] ?? 0], position, cache, true, this.seams.position?.(position, work.prompt.length, tokens))
    cache.filled(tokens, position + 1)
    if (logits !== undefined) this.generate(sequence, logits)
  }

  /** Computes tokens up to the last one. False if time or memory ran out before that. */
  private prefill(sequence: Sequence, model: Llama): boolean {
    const { cache, tokens, work } = sequence
    const stopAt = performance.now() + prefillSlice
    while (sequence.computed < tokens.length - 1) {
      const count = tokens.length - 1 - sequence.computed < this.mostAtOnce ? 1 : this.mostAtOnce
      if (!this.makeRoom(sequence, count)) return false
      const position = sequence.computed
      sequence.computed += count
      const isWanted = (at: number) => work.promptLogprobs !== null && at >= sequence.promptReported && at < work.prompt.length - 1
      const wants = isWanted(position) || isWanted(position + count - 1)
      const place = this.seams.position?.(position, work.prompt.length, tokens)
      const steps = model.step(tokens.slice(position, position + count), position, cache, wants, place)
      for (let at = position; at < sequence.computed; at++) {
        cache.filled(tokens, at + 1)
        const logits = steps[at - position]
        if (logits !== undefined && isWanted(at)) this.reportPrompt(sequence, at, logits)
      }
      if (performance.now() > stopAt) return false
    }
    return true
  }

  /** Reports the log-probabilities of the prompt token after this position. */
  private reportPrompt(sequence: Sequence, position: number, logits: Float32Array) {
    const { tokens, work } = sequence
    const { of, top } = logprobsOf(logits, work.promptLogprobs ?? 0)
    const id = tokens[position + 1] ?? 0
    sequence.promptReported = position + 1
    work.onPromptToken({ id, logprobs: { chosen: of(id), top } })
  }

  private generate(sequence: Sequence, logits: Float32Array) {
    const { tokens, work } = sequence
    const place = this.seams === sound ? null : this.placeOf(sequence)
    if (place !== null) this.seams.computed?.(logits, place)
    const raw = work.topLogprobs === null ? null : Float32Array.from(logits)
    const id = this.choose(sequence, logits, place)
    if (id < 0) return this.end(sequence, "error")
    work.mask?.accept(id)
    tokens.push(id)
    this.observeToken(sequence)
    const logprobs = raw === null ? null : this.report(id, raw, work.topLogprobs ?? 0)
    const textEnds = work.onToken({ id, logprobs })
    if (textEnds || work.stopTokens.has(id)) return this.end(sequence, "stop")
    if (tokens.length - work.prompt.length >= work.maxTokens) this.end(sequence, "length")
  }

  /** The next token; negative if the logits are not numbers. `place`: null without an injected fault. */
  private choose({ sampler, work }: Sequence, logits: Float32Array, place: StepPlace | null): number {
    work.mask?.mask(logits)
    if (place === null) return sampler.choose(logits)
    this.seams.chosenFrom?.(logits, place)
    const best = sampler.choose(logits)
    return this.seams.chosen?.(best, place) ?? best
  }

  private report(id: number, logits: Float32Array, count: number): StepLogprobs {
    const { of, top } = logprobsOf(logits, count)
    const exact = { chosen: of(id), top }
    return this.seams.reported?.(exact) ?? exact
  }

  private placeOf({ cachedTokens, tokens, work }: Sequence): StepPlace {
    const { prompt, sampling, topLogprobs } = work
    return { request: work, tokens, promptLength: prompt.length, cachedTokens, running: this.running.length, sampling, reports: topLogprobs !== null }
  }

  private observeToken(sequence: Sequence) {
    const now = performance.now()
    this.metrics.generationTokens++
    if (sequence.firstTokenAt === 0) {
      sequence.firstTokenAt = now
      this.metrics.promptTokens += sequence.work.prompt.length
      this.metrics.computedTokens += sequence.work.prompt.length - sequence.cachedTokens
      this.metrics.timeToFirstToken.observe(seconds(sequence.arrived, now))
    } else {
      this.metrics.interToken.observe(seconds(sequence.lastTokenAt, now))
    }
    sequence.lastTokenAt = now
  }

  /** Reserves the next positions; false if the sequence itself was preempted. */
  private makeRoom(sequence: Sequence, count = 1): boolean {
    while (!reserveAll(sequence.cache, sequence.computed, count)) {
      const victim = this.running.reduce((last, one) => (one.admitted > last.admitted ? one : last), sequence)
      victim.cache.release()
      victim.computed = 0
      this.seams.preempted?.(victim.tokens)
      this.metrics.preemptions++
      this.remove(victim)
      this.waiting.unshift(victim)
      if (victim === sequence) return false
    }
    return true
  }

  private remove(sequence: Sequence) {
    const at = this.running.indexOf(sequence)
    if (at < 0) return
    this.running.splice(at, 1)
    if (at < this.cursor) this.cursor--
  }

  private end(sequence: Sequence, reason: EndReason) {
    const waitingAt = this.waiting.indexOf(sequence)
    if (waitingAt >= 0) this.waiting.splice(waitingAt, 1)
    else if (!this.running.includes(sequence)) return
    this.remove(sequence)
    if (reason !== "abort" || this.seams.leaks !== true) sequence.cache.release()
    const now = performance.now()
    const generated = sequence.tokens.length - sequence.work.prompt.length
    this.metrics.finished[reason]++
    if (reason !== "abort") {
      this.metrics.ended.prompt += sequence.work.prompt.length
      this.metrics.ended.generation += generated
    }
    this.metrics.endToEnd.observe(seconds(sequence.arrived, now))
    if (generated > 1) this.metrics.perOutputToken.observe(seconds(sequence.firstTokenAt, sequence.lastTokenAt) / (generated - 1))
    sequence.work.onEnd(reason)
  }
}
