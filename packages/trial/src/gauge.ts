/**
 * The sum over all series of a metric in the text of `/metrics`, under any of the names (separated by `|`); null if
 * none is present.
 */
export const gauge = (metrics: string, names: string): number | null => {
  const series = [...metrics.matchAll(new RegExp(`^(?:${names})(?:\\{[^}]*\\})? ([\\d.e+-]+)$`, "gm"))]
  return series.length === 0 ? null : series.reduce((sum, [, count]) => sum + Number(count), 0)
}
