/** The sum of a metric's series in the text of `/metrics`, whichever of these names it has (divided by `|`); null where it is not told. */
export const gauge = (metrics: string, names: string): number | null => {
  const found = [...metrics.matchAll(new RegExp(`^(?:${names})(?:\\{[^}]*\\})? ([\\d.e+-]+)$`, "gm"))]
  return found.length === 0 ? null : found.reduce((sum, [, count]) => sum + Number(count), 0)
}
