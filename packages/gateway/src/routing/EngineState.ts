import type { OrgId } from "@seatrial/domain"
import type { RoutedEndpoint } from "@seatrial/store"
import type { EngineMetrics } from "./readEngineMetrics.ts"
import { hashOf } from "./rendezvous.ts"

/** `performance.now()` of the engine's last sign of life. The code that reads the engine's answers updates it. */
export interface Pulse {
  at: number
}

/** Milliseconds after which metrics reported by an engine are ignored. */
const metricsMaxAgeMillis = 5_000
const fullCache = 0.9
const longQueue = 5
/** Milliseconds for which an engine that rejected a request as full gets no further requests. */
const fullMillis = 1_000

const failuresWithin = 10_000
const failuresAllowed = 3
/**
 * Consecutive failed answers after which an engine is ejected. If all of them belong to one organization, its requests
 * may be the cause, so the limit is higher.
 */
const failedAnswers = { ofSeveral: 3, ofOne: 6 }
const firstEjection = 10_000
const longestEjection = 120_000

/**
 * Slow start: requests that a new engine gets at once if a queue was waiting for it, and milliseconds until that number
 * doubles.
 */
const firstStep = 8
const stepTime = 250

/** What this gateway knows about one engine. Times are `performance.now()`. */
export class EngineState {
  /** The URL and the pod never change. The revision may become an earlier one of the model. */
  endpoint: RoutedEndpoint
  /** Identifies the engine in rendezvous hashing; the same on every gateway. */
  readonly hash: number
  readonly pulse: Pulse
  /** Requests sent to the engine that have not ended. */
  outstanding = 0
  /** How many of these are streams. */
  streams = 0
  /** Requests under way by organization. Organizations without requests are absent. */
  readonly #held = new Map<string, number>()
  /** Requests that it answered, and attempts that failed, since the model's serving revision changed. */
  goodRequests = 0
  failedRequests = 0
  /** The organization of the last failed attempt; null if none failed. */
  #lastFailedFor: string | null = null
  ejectedUntil = 0
  /** Whether the engine was ejected and has not been readmitted. See `allowed`. */
  #isHalfOpen = false
  #penalty = 0
  #failures: Array<number> = []
  /** Failed answers since the last good one, and the organization that sent those requests; null if several did. */
  #failedAnswers = 0
  #failedFor: OrgId | null = null
  #metrics: EngineMetrics | null = null
  #metricsAt = 0
  /** When the engine's token counter last changed. */
  #tokensAt = 0
  #fullUntil = 0
  /** When slow start began; null when it is over. */
  #rampFrom: number | null = null

  constructor(endpoint: RoutedEndpoint, now: number, ramps: boolean) {
    this.endpoint = endpoint
    this.hash = hashOf(endpoint.url)
    this.pulse = { at: now }
    this.#rampFrom = ramps ? now : null
  }

  /** Adds a request, which takes a slot for each of its sequences. */
  enter(now: number, streamed: boolean, orgId: string, sequences = 1) {
    if (this.outstanding === 0) this.pulse.at = now
    this.outstanding += sequences
    if (streamed) this.streams++
    this.#held.set(orgId, this.heldBy(orgId) + sequences)
  }

  leave(streamed: boolean, orgId: string, sequences = 1) {
    this.outstanding -= sequences
    if (streamed) this.streams--
    const held = this.heldBy(orgId) - sequences
    if (held > 0) this.#held.set(orgId, held)
    else this.#held.delete(orgId)
  }

  heldBy(orgId: string): number {
    return this.#held.get(orgId) ?? 0
  }

  #freshMetrics(now: number): EngineMetrics | null {
    return this.#metrics !== null && now - this.#metricsAt <= metricsMaxAgeMillis ? this.#metrics : null
  }

  /** Stores the metrics that the engine reported. */
  recordMetrics(metrics: EngineMetrics, now: number) {
    if (metrics.tokens !== null && metrics.tokens !== this.#metrics?.tokens) {
      // A long answer that is not streamed gives no other sign that the request after an ejection is computed.
      if (this.#metrics !== null && this.outstanding > 0 && !this.isEjected(now)) this.readmit(now)
      this.pulse.at = now
      this.#tokensAt = now
    }
    this.#metrics = metrics
    this.#metricsAt = now
  }

  /** The engine rejected a request because it is full. */
  markFull(now: number) {
    this.#fullUntil = now + fullMillis
  }

  /**
   * Requests that the engine processes for this gateway, plus all requests in the engine's queue, including those of
   * other gateways.
   */
  load(now: number): number {
    return this.outstanding + (this.#freshMetrics(now)?.waiting ?? 0)
  }

  /** Requests that the engine computes, of all gateways, as it reports them; 0 if it does not. */
  reportedRunning(now: number): number {
    return this.#freshMetrics(now)?.running ?? 0
  }

  /** Whether the engine reports that it is saturated. An idle engine is never full. */
  isFull(now: number): boolean {
    if (now < this.#fullUntil) return true
    const metrics = this.#freshMetrics(now)
    return metrics !== null && metrics.running !== 0 && ((metrics.cacheUse ?? 0) > fullCache || (metrics.waiting ?? 0) > longQueue)
  }

  /**
   * Requests that this gateway may send at once. `limit` is what the engine can process. After an ejection it is one,
   * until that request is answered or the engine's token counter moves.
   */
  allowed(limit: number, now: number): number {
    if (this.#isHalfOpen) return Math.min(1, limit)
    if (this.#rampFrom === null) return limit
    const allowed = firstStep * 2 ** Math.min(30, Math.floor((now - this.#rampFrom) / stepTime))
    if (allowed >= limit) this.#rampFrom = null
    return Math.min(allowed, limit)
  }

  /** Milliseconds until slow start allows more requests; null if slow start is over. */
  nextStep(now: number): number | null {
    return this.#rampFrom === null ? null : stepTime - ((now - this.#rampFrom) % stepTime)
  }

  isEjected(now: number): boolean {
    return now < this.ejectedUntil
  }

  /** Records a failure. Returns true if the engine failed too often; once is too often after an ejection. */
  fail(now: number): boolean {
    if (this.#isHalfOpen && !this.isEjected(now)) return true
    this.#failures = [...this.#failures.filter((at) => now - at < failuresWithin), now].slice(-failuresAllowed)
    return this.#failures.length >= failuresAllowed
  }

  /** Sets the counts of answers and failures to zero. */
  resetAnswers() {
    this.goodRequests = 0
    this.failedRequests = 0
    this.#lastFailedFor = null
  }

  /**
   * Counts a failed attempt of a request. If organizations share the engine, it counts only after a failure of another
   * one, so that an organization whose requests make engines fail cannot make a new revision look worse alone.
   */
  countFailure(orgId: string, isShared: boolean) {
    const isOfSeveral = this.#lastFailedFor !== null && this.#lastFailedFor !== orgId
    this.#lastFailedFor = orgId
    if (!isShared || isOfSeveral) this.failedRequests++
  }

  /** Records a good answer. Returns true if it is the first one after an ejection. */
  answered(now: number): boolean {
    this.goodRequests++
    this.#failedAnswers = 0
    if (!this.#isHalfOpen || this.isEjected(now)) return false
    this.readmit(now)
    return true
  }

  /** Ends an ejection, with a slow start. */
  readmit(now: number) {
    if (!this.#isHalfOpen) return
    this.#isHalfOpen = false
    this.ejectedUntil = Math.min(this.ejectedUntil, now)
    this.#rampFrom = now
  }

  /** Records a failed answer. Returns true if all recent answers of the engine failed. */
  failAnswer(orgId: OrgId): boolean {
    this.#failedFor = this.#failedAnswers === 0 || this.#failedFor === orgId ? orgId : null
    this.#failedAnswers++
    return this.#failedAnswers >= (this.#failedFor === null ? failedAnswers.ofSeveral : failedAnswers.ofOne)
  }

  /** Ejects the engine for a while: twice as long as the last time if that ended less than two minutes ago. */
  eject(now: number) {
    const again = this.#penalty > 0 && now - this.ejectedUntil < longestEjection
    this.#penalty = again ? Math.min(longestEjection, 2 * this.#penalty) : firstEjection
    this.ejectedUntil = now + this.#penalty
    this.#isHalfOpen = true
    this.#rampFrom = null
    this.#failures = []
    this.#failedAnswers = 0
    this.pulse.at = now
  }

  /** When the engine last computed tokens according to its counter; `now` if it reports none. */
  workedUntil(now: number): number {
    return (this.#metrics?.tokens ?? null) === null ? now : this.#tokensAt
  }

  /**
   * Whether the engine has work but gave no sign of life for `patience` milliseconds. Signs of life are a frame, an
   * answer or a change of its token counters. An answer that is not streamed gives no sign before it is complete, so it
   * counts only if the engine reports token counters.
   */
  isHung(now: number, patience: number): boolean {
    if (this.outstanding === 0 || now - this.pulse.at <= patience) return false
    if (this.#freshMetrics(now)?.running === 0) return false
    return this.streams > 0 || (this.#metrics?.tokens ?? null) !== null
  }
}
