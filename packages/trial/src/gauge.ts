import type { MetricSeries } from "@seatrial/domain"

const patternOf = ({ label, name }: MetricSeries): string => (label === undefined ? name : `${name}\\{[^}]*${label}[^}]*\\}`)

/** The sum over all of these series in the text of `/metrics`; null if none is present. */
export const gauge = (metrics: string, series: ReadonlyArray<MetricSeries>): number | null => {
  const values = [...metrics.matchAll(new RegExp(`^(?:${series.map(patternOf).join("|")})(?:\\{[^}]*\\})? ([\\d.e+-]+)$`, "gm"))]
  return values.length === 0 ? null : values.reduce((sum, [, value]) => sum + Number(value), 0)
}
