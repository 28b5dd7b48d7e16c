import type { OrgId } from "@seatrial/domain"
import type { Endpoint } from "@seatrial/store"
import type { EngineMetrics } from "./readEngineMetrics.ts"
import { hashOf } from "./rendezvous.ts"

/** When an engine last gave a sign of life, `performance.now()`: whoever reads its answers writes it. */
export interface Pulse {
  at: number
}

/** Milliseconds after which what an engine told of itself counts no more. */
const stale = 5_000
const fullCache = 0.9
const longQueue = 5
/** Milliseconds for which an engine that had no room is not asked again. */
const turnedAwayFor = 1_000

const failuresWithin = 10_000
const failuresAllowed = 3
/** Answers in a row that failed, with which an engine is one that answers nobody: of several organisations, and of one alone, whose requests may be what it fails on. */
const failedAnswers = { ofSeveral: 3, ofOne: 6 }
const firstEjection = 10_000
const longestEjection = 120_000

/** Requests that a new engine gets at once where some have waited for it, and milliseconds until it gets twice as many. */
const firstStep = 8
const stepTime = 250

/** What this gateway knows of one engine. Times are `performance.now()`. */
export class EngineState {
  readonly endpoint: Endpoint
  /** Its place among others, the same on every gateway. */
  readonly hash: number
  readonly pulse: Pulse
  /** Requests that it was sent and that have not ended. */
  outstanding = 0
  /** How many of these are streams. */
  streams = 0
  /** How many each organization has; an organization without any is not in it. */
  readonly #held = new Map<string, number>()
  ejectedUntil = 0
  #penalty = 0
  #failures: Array<number> = []
  /** Since its last good answer: answers that failed, and who had asked, or null for several. */
  #failedAnswers = 0
  #failedFor: OrgId | null = null
  #metrics: EngineMetrics | null = null
  #metricsAt = 0
  #turnedAwayUntil = 0
  /** Since when it takes more step by step; null: all that it may have. */
  #rampFrom: number | null = null

  constructor(endpoint: Endpoint, now: number, ramps: boolean) {
    this.endpoint = endpoint
    this.hash = hashOf(endpoint.url)
    this.pulse = { at: now }
    this.#rampFrom = ramps ? now : null
  }

  /** Takes a request. */
  enter(now: number, streamed: boolean, orgId: string) {
    if (this.outstanding === 0) this.pulse.at = now
    this.outstanding++
    if (streamed) this.streams++
    this.#held.set(orgId, this.heldBy(orgId) + 1)
  }

  leave(streamed: boolean, orgId: string) {
    this.outstanding--
    if (streamed) this.streams--
    const held = this.heldBy(orgId) - 1
    if (held > 0) this.#held.set(orgId, held)
    else this.#held.delete(orgId)
  }

  heldBy(orgId: string): number {
    return this.#held.get(orgId) ?? 0
  }

  #told(now: number): EngineMetrics | null {
    return this.#metrics !== null && now - this.#metricsAt <= stale ? this.#metrics : null
  }

  /** What it says of itself. */
  tell(metrics: EngineMetrics, now: number) {
    if (metrics.tokens !== null && metrics.tokens !== this.#metrics?.tokens) this.pulse.at = now
    this.#metrics = metrics
    this.#metricsAt = now
  }

  /** It had no room for a request. */
  turnAway(now: number) {
    this.#turnedAwayUntil = now + turnedAwayFor
  }

  /** Requests that it has or that wait there, also those of other gateways. */
  load(now: number): number {
    return this.outstanding + (this.#told(now)?.waiting ?? 0)
  }

  /** Whether it has more than it can work on, as it says itself; one that works on nothing is never full. */
  isFull(now: number): boolean {
    if (now < this.#turnedAwayUntil) return true
    const told = this.#told(now)
    return told !== null && told.running !== 0 && ((told.cacheUse ?? 0) > fullCache || (told.waiting ?? 0) > longQueue)
  }

  /** Requests that it may have of this gateway at once, where `limit` is what it can work on. */
  allowed(limit: number, now: number): number {
    if (this.#rampFrom === null) return limit
    const allowed = firstStep * 2 ** Math.min(30, Math.floor((now - this.#rampFrom) / stepTime))
    if (allowed >= limit) this.#rampFrom = null
    return Math.min(allowed, limit)
  }

  /** Milliseconds until it may have more, where it takes more step by step. */
  nextStep(now: number): number | null {
    return this.#rampFrom === null ? null : stepTime - ((now - this.#rampFrom) % stepTime)
  }

  isEjected(now: number): boolean {
    return now < this.ejectedUntil
  }

  /** Something went wrong with it; true where it did too often. */
  fail(now: number): boolean {
    this.#failures = [...this.#failures.filter((at) => now - at < failuresWithin), now].slice(-failuresAllowed)
    return this.#failures.length >= failuresAllowed
  }

  /** It answered, and well. */
  answered() {
    this.#failedAnswers = 0
  }

  /** It answered that it failed, or began no answer; true where it did so to everybody who asked of late. */
  failAnswer(orgId: OrgId): boolean {
    this.#failedFor = this.#failedAnswers === 0 || this.#failedFor === orgId ? orgId : null
    this.#failedAnswers++
    return this.#failedAnswers >= (this.#failedFor === null ? failedAnswers.ofSeveral : failedAnswers.ofOne)
  }

  /** Takes it out for a while: twice as long as the last time, where that ended less than two minutes ago. */
  eject(now: number) {
    const again = this.#penalty > 0 && now - this.ejectedUntil < longestEjection
    this.#penalty = again ? Math.min(longestEjection, 2 * this.#penalty) : firstEjection
    this.ejectedUntil = now + this.#penalty
    this.#failures = []
    this.#failedAnswers = 0
    this.pulse.at = now
  }

  /**
   * Whether it has work and gave no sign of life for so many milliseconds: a frame, an answer, tokens in its own counters. Answers that are not streamed give none until they
   * are ready, so they count only with an engine that has such counters.
   */
  isHung(now: number, patience: number): boolean {
    if (this.outstanding === 0 || now - this.pulse.at <= patience) return false
    if (this.#told(now)?.running === 0) return false
    return this.streams > 0 || (this.#metrics?.tokens ?? null) !== null
  }
}
