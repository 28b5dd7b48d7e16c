import type { BenchmarkStep, StepFigures } from "@seatrial/domain"
import type { RequestRecord } from "./RequestRecord.ts"
import { distributionOf, meanOf, medianOf, rounded } from "./statistics.ts"

/** Limits of goodput in milliseconds. */
export const goodputLimits = { ttft_ms: 2_000, tpot_ms: 100 } as const

/** Delay of the generator's event loop (99th percentile, milliseconds) from which the figures are invalid. */
export const mostDelay = 10

/** Maximum standard error of the blocks' mean, as a share of the mean, at which a step is steady. */
export const steadyShare = 0.05

/** The settings and records of a step. */
export interface MeasuredStep {
  readonly concurrency: number
  readonly inputTokens: number
  readonly gpus: number
  /** Length of a throughput block in milliseconds. */
  readonly blockMillis: number
  readonly prolonged: boolean
  readonly records: ReadonlyArray<RequestRecord>
  /** When the first stream found no further request, or the time was over. */
  readonly closedAt: number
  /** The largest value of the generator's threads in milliseconds. */
  readonly delayP99: number
}

const answered = ({ outcome }: RequestRecord) => outcome === "answered"
const counted = (record: RequestRecord) => answered(record) || record.outcome === "unfinished"

const hasTold = (record: RequestRecord) => answered(record) && record.arrivals.length > 0
const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/**
 * Tokens per chunk of a record: its token count divided by its chunks. If the engine reported no count yet, the mean of
 * the other records; 1 without any.
 */
const tokensPerChunk = (records: ReadonlyArray<RequestRecord>) => {
  const counted = records.filter(hasTold)
  const usual = counted.length === 0 ? 1 : sum(counted.map(({ tokens }) => tokens)) / sum(counted.map(({ arrivals }) => arrivals.length))
  return (record: RequestRecord) => (hasTold(record) ? record.tokens / record.arrivals.length : usual)
}

const tokensWithin = (records: ReadonlyArray<RequestRecord>, from: number, to: number): number => {
  const perChunk = tokensPerChunk(records)
  return sum(records.map((record) => record.arrivals.filter((at) => at >= from && at < to).length * perChunk(record)))
}

/**
 * The time from the first token of the last stream to the first stream without a further request, excluding ramp and
 * drain.
 */
export const windowOf = (records: ReadonlyArray<RequestRecord>, concurrency: number, closedAt: number): { readonly from: number; readonly to: number } => {
  const firsts = new Map<number, number>()
  for (const { arrivals, stream } of records) {
    const [first] = arrivals
    if (first !== undefined) firsts.set(stream, Math.min(firsts.get(stream) ?? first, first))
  }
  const from = firsts.size < concurrency ? closedAt : Math.max(...firsts.values())
  return { from, to: Math.max(from, closedAt) }
}

/**
 * Output tokens/s of the complete blocks of a window, with their mean and its standard error if there are at least two.
 */
export const blocksOf = (records: ReadonlyArray<RequestRecord>, window: { readonly from: number; readonly to: number }, blockMillis: number) => {
  const rates = Array.from({ length: Math.floor((window.to - window.from) / blockMillis) }, (_, index) => {
    const from = window.from + index * blockMillis
    return tokensWithin(records, from, from + blockMillis) / (blockMillis / 1_000)
  })
  const spread = meanOf(rates)
  return { rates, spread, steady: spread === null ? null : spread.standardError <= steadyShare * spread.mean }
}

const latencies = (records: ReadonlyArray<RequestRecord>) => {
  const known = records.filter(counted)
  return {
    // Includes unfinished requests: their first token was measured, and a figure without them would favor fast
    // requests.
    ttft: known.flatMap(({ arrivals: [first], sentAt }) => (first === undefined ? [] : [first - sentAt])),
    gaps: known.flatMap(({ arrivals }) => arrivals.slice(1).map((at, index) => at - (arrivals[index] ?? at))),
    tpot: known.filter(answered).flatMap(tpotOf),
    e2e: known.filter(answered).flatMap(({ arrivals, sentAt }) => arrivals.slice(-1).map((last) => last - sentAt))
  }
}

/** A gap is a stall if it lasts at least this many milliseconds, and this many times the median gap. */
const [leastStall, timesMedian] = [200, 10] as const

/**
 * Percentiles of gaps hide stalls: an engine that stops for a second every five seconds loses a sixth of its time in
 * one of a hundred gaps.
 */
const stallsOf = (gaps: ReadonlyArray<number>): NonNullable<StepFigures["stalls"]> => {
  const least = Math.max(leastStall, timesMedian * (medianOf(gaps) ?? 0))
  const stalls = gaps.filter((gap) => gap >= least)
  const longest = stalls.reduce((most, gap) => Math.max(most, gap), 0)
  return { gaps: stalls.length, longest_ms: rounded(longest), share: rounded(sum(stalls) / Math.max(1, sum(gaps))) }
}

const tpotOf = ({ arrivals, tokens }: RequestRecord): ReadonlyArray<number> => {
  const [first, last] = [arrivals[0], arrivals.at(-1)]
  return first === undefined || last === undefined || tokens < 2 ? [] : [(last - first) / (tokens - 1)]
}

const isGood = (record: RequestRecord): boolean => {
  const [first] = record.arrivals
  return first !== undefined && first - record.sentAt <= goodputLimits.ttft_ms && tpotOf(record).every((tpot) => tpot <= goodputLimits.tpot_ms)
}

/** Computes the figures of one step from its records. */
export const stepFigures = (step: MeasuredStep): BenchmarkStep => {
  const { concurrency, records } = step
  const window = windowOf(records, concurrency, step.closedAt)
  const seconds = (window.to - window.from) / 1_000
  const perSecond = (amount: number) => (seconds <= 0 ? 0 : rounded(amount / seconds))
  const tokens = tokensWithin(records.filter(counted), window.from, window.to)
  const { e2e, gaps, tpot, ttft } = latencies(records)
  const complete = records.filter(answered)
  const ended = complete.filter(({ arrivals }) => {
    const last = arrivals.at(-1) ?? Number.NEGATIVE_INFINITY
    return last >= window.from && last < window.to
  })
  const { rates, spread, steady } = blocksOf(records.filter(counted), window, step.blockMillis)
  const errors = records.filter((record) => !counted(record))
  const kinds = [...new Set(errors.map(({ outcome }) => outcome))].sort()
  const firstToken = medianOf(ttft)
  const [ttftFigures, tpotFigures] = [distributionOf(ttft), distributionOf(tpot)]
  return {
    concurrency,
    requests: complete.length,
    errors: errors.length,
    seconds: rounded(seconds),
    ttft_ms_p50: ttftFigures.p50?.value ?? null,
    ttft_ms_p90: ttftFigures.p90?.value ?? null,
    tpot_ms_p50: tpotFigures.p50?.value ?? null,
    tpot_ms_p90: tpotFigures.p90?.value ?? null,
    output_tokens_per_s: perSecond(tokens),
    figures: {
      ttft_ms: ttftFigures,
      tpot_ms: tpotFigures,
      chunk_gap_ms: distributionOf(gaps),
      stalls: stallsOf(gaps),
      e2e_ms: distributionOf(e2e),
      requests_per_s: perSecond(ended.length),
      prefill_tokens_per_s: concurrency === 1 && firstToken !== null && firstToken > 0 ? rounded((step.inputTokens / firstToken) * 1_000) : null,
      output_tokens_per_s_per_gpu: rounded(perSecond(tokens) / step.gpus),
      goodput_per_s: perSecond(ended.filter(isGood).length),
      blocks: {
        seconds: step.blockMillis / 1_000,
        tokens_per_s: rates.map(rounded),
        mean: spread === null ? null : rounded(spread.mean),
        standard_error: spread === null ? null : rounded(spread.standardError)
      },
      steady,
      prolonged: step.prolonged,
      unfinished: records.filter(({ outcome }) => outcome === "unfinished").length,
      wrong_counts: errors.filter(({ outcome }) => outcome === "wrong_counts").length,
      error_kinds: Object.fromEntries(kinds.map((kind) => [kind, errors.filter(({ outcome }) => outcome === kind).length])),
      event_loop_delay_ms_p99: rounded(step.delayP99),
      client_limited: step.delayP99 > mostDelay
    }
  }
}
