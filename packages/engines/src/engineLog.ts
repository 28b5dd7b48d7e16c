import type { FailureCode, NamedFailure } from "@seatrial/domain"

/** The parts of a line pattern between its placeholders. */
export const piecesOf = (line: string): ReadonlyArray<string> => line.split(/\{\*?\}/).filter((piece) => piece.trim() !== "")

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

/**
 * The numbers of the last match of a line pattern. `{}` matches a number, `{*}` matches any text. Engines log some
 * lines once per worker, and again after a retry, so that the last match counts.
 */
export const lastHit = (text: string, line: string): ReadonlyArray<string | undefined> => allHits(text, line).at(-1) ?? []

const patternOf = (line: string): RegExp =>
  new RegExp(
    line
      .split(/(\{\*?\})/)
      .map((part) => (part === "{}" ? "([\\d.,]*\\d)" : part === "{*}" ? "[^\\n]*?" : escaped(part)))
      .join(""),
    "g"
  )

/**
 * The time of the last matching line in Unix milliseconds, or null if there is no match. Each line of the log begins
 * with a time in the format of Kubernetes.
 */
export const timeOfHit = (log: string, line: string): number | null => {
  const pattern = patternOf(line)
  const lastMatch = log.split("\n").findLast((one) => one.search(pattern) >= 0)
  const time = Date.parse(lastMatch?.split(" ", 1)[0] ?? "")
  return Number.isNaN(time) ? null : time
}

/** Converts GiB, as engines report them, to bytes; null if there is no figure. */
export const bytesOfGib = (text: string | undefined): number | null => (text === undefined ? null : Math.round(Number(text) * 2 ** 30))

export const numberOf = (text: string | undefined): number | null => (text === undefined ? null : Number(text.replaceAll(",", "")))

/** The value of the first series of a metric in Prometheus' text format. */
export const metricValue = (metrics: string, name: string): number | null => metricValues(metrics, name)[0] ?? null

/** The values of a metric's series in Prometheus' text format. */
export const metricValues = (metrics: string, name: string): ReadonlyArray<number> =>
  metrics
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .map((line) => Number(line.slice(line.lastIndexOf(" ") + 1)))
    .filter(Number.isFinite)

/** The values of a label in all series of a metric that have the label. */
export const metricLabels = (metrics: string, name: string, label: string): ReadonlyArray<string> =>
  metrics
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`))
    .flatMap((line) => new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1] ?? [])

/** The sum of the figures; null if one of them is missing or there are none. */
export const sumOf = (figures: ReadonlyArray<number | null>): number | null =>
  figures.length === 0 ? null : figures.reduce((sum, one) => (sum === null || one === null || !Number.isFinite(one) ? null : sum + one), 0)

/** The numbers of all matches of a line pattern. */
export const allHits = (text: string, line: string): ReadonlyArray<ReadonlyArray<string | undefined>> =>
  [...text.matchAll(patternOf(line))].map((hit) => hit.slice(1))

/**
 * A log message of a failed start. `sign`: a text of the message, or several texts that follow each other in one line.
 */
export interface StartFailure {
  /** The library that writes the message, if it is not the engine itself. */
  readonly by?: "torch" | "transformers" | "huggingface_hub" | "argparse" | "python"
  readonly sign: ReadonlyArray<string>
  /**
   * The texts as they occur in the engine's sources. Present only if `sign` contains a value that the source inserts.
   */
  readonly source?: ReadonlyArray<string>
  readonly code: FailureCode
  readonly text: string | ((line: string) => string)
}

const holds = (line: string, sign: ReadonlyArray<string>): boolean => {
  let from = 0
  for (const piece of sign) {
    const at = line.indexOf(piece, from)
    if (at < 0) return false
    from = at + piece.length
  }
  return true
}

/**
 * Returns the cause of a failed start: the first entry of `failures` that occurs anywhere in the log. The end of a log
 * is not enough, because wrappers repeat and hide the original error.
 */
export const startFailureOf = (log: string, failures: ReadonlyArray<StartFailure>, version: string): NamedFailure => {
  const lines = log.split("\n")
  for (const { code, sign, text } of failures) {
    const line = lines.findLast((one) => holds(one, sign))
    if (line !== undefined) return { code, text: typeof text === "string" ? text : text(line) }
  }
  return {
    code: "engine_start_failed",
    text: `${version} ended before it was ready. Choose another runtime or revision; the end of its output is in the log of Seatrial's operator.`
  }
}
