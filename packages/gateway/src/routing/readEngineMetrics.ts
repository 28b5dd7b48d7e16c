import type { EngineFigure, EngineWire } from "@seatrial/domain"

/** Figures that an engine reports; null for a figure that it does not report. */
export interface EngineMetrics {
  readonly running: number | null
  readonly waiting: number | null
  /** Used share of the cache, 0 to 1. */
  readonly cacheUse: number | null
  /** A counter that changes when tokens are read or generated. */
  readonly tokens: number | null
}

const sum = (one: number | null, other: number) => (one ?? 0) + other
const most = (one: number | null, other: number) => Math.max(one ?? 0, other)

const join: Readonly<Record<keyof EngineMetrics, (one: number | null, other: number) => number>> = { running: sum, waiting: sum, cacheUse: most, tokens: sum }

/** Every rank of a tensor-parallel engine reports the same figures, so only rank 0 counts. */
const otherRank = /[{,]tp_rank="[1-9]/

/** Reads the figures that routing needs from Prometheus' text format. */
export const readEngineMetrics = (text: string, { metrics: { figures, prefix } }: Pick<EngineWire, "metrics">): EngineMetrics => {
  const read: Record<EngineFigure, number | null> = { running: null, waiting: null, cacheUse: null, tokens: null }
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start)
    const end = newline === -1 ? text.length : newline
    // Most lines are comments; this check skips them without a copy.
    if (text.startsWith(prefix, start)) {
      const line = text.slice(start + prefix.length, end).trimEnd()
      const figure = figures.get(line.slice(0, line.search(/[{ ]/)))
      const value = Number(line.slice(line.lastIndexOf(" ") + 1))
      if (figure !== undefined && Number.isFinite(value) && !otherRank.test(line)) read[figure] = join[figure](read[figure], value)
    }
    start = end + 1
  }
  return read
}
