import type { MetricSeries } from "@seatrial/domain"

/**
 * The labels and the value of each line of a metric in the text of `/metrics`. Reads each character a few times at most:
 * an engine that runs hostile code must not be able to stop this process.
 */
const linesOf = (metrics: string, name: string): ReadonlyArray<{ readonly labels: string; readonly value: string }> =>
  metrics.split("\n").flatMap((line) => {
    if (!line.startsWith(name)) return []
    const end = line.lastIndexOf(" ")
    const series = line.slice(name.length, end)
    return series === "" || (series.startsWith("{") && series.endsWith("}")) ? [{ labels: series, value: line.slice(end + 1).trimEnd() }] : []
  })

/** The labels of the first series of a metric, as they are written; null if there is none. */
export const labelsOf = (metrics: string, name: string): string | null => linesOf(metrics, name)[0]?.labels ?? null

/** The sum over all of these series in the text of `/metrics`; null if none is present. */
export const gauge = (metrics: string, series: ReadonlyArray<MetricSeries>): number | null => {
  const values = series.flatMap(({ label, name }) =>
    linesOf(metrics, name).flatMap(({ labels, value }) => {
      const number = value === "" || (label !== undefined && !labels.includes(label)) ? Number.NaN : Number(value)
      return Number.isFinite(number) ? [number] : []
    })
  )
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0)
}
