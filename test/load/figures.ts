/** Median and range of several runs. */
export interface Figure {
  readonly median: number
  readonly min: number
  readonly max: number
}

export const figureOf = (values: ReadonlyArray<number>): Figure => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const high = sorted[middle] ?? Number.NaN
  return {
    median: sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? Number.NaN) + high) / 2,
    min: sorted[0] ?? Number.NaN,
    max: sorted.at(-1) ?? Number.NaN
  }
}

/** `median (min–max)` with the given number of decimals and thousands separators. */
export const show = ({ max, median, min }: Figure, decimals = 0): string => {
  const text = (value: number) => value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
  return `${text(median)} (${text(min)}–${text(max)})`
}

export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
