import { thresholds } from "@seatrial/trial"

/**
 * What the probes of one start of an engine have shown. `total`: the evidence over all times at which a fault may have
 * begun. `recent`: the evidence since the last probe without any; at most 1 without any.
 */
export interface Evidence {
  readonly total: number
  readonly recent: number
  readonly probes: number
}

export const noEvidence: Evidence = { total: 0, recent: 0, probes: 0 }

/** The largest mean that counts as healthy: one fifth of the scale. */
export const healthyMean = 0.2
/** The scale: a distance of 0.25 nats a token or more is 1, so that the healthy mean is the limit of starts. */
const wholeScale = thresholds.shift.absolute / healthyMean
/** The part of the stake that each probe bets. Below 1 / `healthyMean`, so that no probe loses everything. */
const bet = 4
/** The evidence of an engine that goes on serving does not exceed what a double holds. */
const mostEvidence = 1e300

/** The mean difference per token as a number from 0 to 1. NaN, of an engine that computes no numbers, is 1. */
export const scoreOfDistance = (nats: number): number => (nats < wholeScale ? nats / wholeScale : 1)

/**
 * Adds a probe. `score`: from 0 to 1.
 *
 * The mean score of a healthy engine is at most `healthyMean`, independent of its earlier scores. Then the expected
 * factor of each probe is at most 1, so for each time at which a fault may have begun the product of the factors since
 * then is a supermartingale. `total` is their sum (Shiryaev 1963, Roberts 1966): its expectation after n probes is at
 * most n, and by Ville's inequality it exceeds A within n probes with a probability of at most n / A. The delay until an
 * alarm does not depend on how long the engine was healthy before.
 */
export const addProbe = ({ probes, recent, total }: Evidence, score: number): Evidence => {
  const factor = 1 + bet * (score - healthyMean)
  return {
    total: Math.min(mostEvidence, (total + 1) * factor),
    recent: Math.min(mostEvidence, Math.max(1, recent) * factor),
    probes: probes + 1
  }
}

/** Whether the latest probes are evidence. The next probe then follows sooner. */
export const isDoubtful = ({ recent }: Evidence): boolean => recent > 1

/** The factor by which the interval is shorter after a probe that was evidence. */
export const soonerBy = 12

const yearMillis = 365.25 * 86_400_000

/**
 * The evidence for an alarm, so that a healthy engine gets one within a year with a probability of at most `alpha`, even
 * if each of its probes follows sooner.
 */
export const alarmLevel = (alpha: number, intervalMillis: number): number => ((yearMillis / intervalMillis) * soonerBy) / alpha
