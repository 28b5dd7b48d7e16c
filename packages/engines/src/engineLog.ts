import type { FailureCode, NamedFailure } from "@seatrial/domain"

/** The pieces of a line's pattern that stand between its numbers. */
export const piecesOf = (line: string): ReadonlyArray<string> => line.split(/\{\*?\}/).filter((piece) => piece.trim() !== "")

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

/**
 * The numbers of the last place where a line is found, in which `{}` stands for a number and `{*}` for anything; engines say some things once a worker, and again after
 * a second try.
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

/** When the last line was said that matches, Unix milliseconds, of a log whose lines begin with their times as Kubernetes writes them; null where there is none. */
export const timeOfHit = (log: string, line: string): number | null => {
  const pattern = patternOf(line)
  const said = log.split("\n").findLast((one) => one.search(pattern) >= 0)
  const time = Date.parse(said?.split(" ", 1)[0] ?? "")
  return Number.isNaN(time) ? null : time
}

/** Bytes of what an engine tells in GiB; null where it told nothing. */
export const bytesOfGib = (text: string | undefined): number | null => (text === undefined ? null : Math.round(Number(text) * 2 ** 30))

export const numberOf = (text: string | undefined): number | null => (text === undefined ? null : Number(text.replaceAll(",", "")))

/** The value of a metric in Prometheus' text format: of several series the first. */
export const metricValue = (metrics: string, name: string): number | null => metricValues(metrics, name)[0] ?? null

/** The values of a metric's series in Prometheus' text format. */
export const metricValues = (metrics: string, name: string): ReadonlyArray<number> =>
  metrics
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .map((line) => Number(line.slice(line.lastIndexOf(" ") + 1)))
    .filter(Number.isFinite)

/** The values of a label of a metric's series, of those that have it. */
export const metricLabels = (metrics: string, name: string, label: string): ReadonlyArray<string> =>
  metrics
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`))
    .flatMap((line) => new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1] ?? [])

/** The sum of figures that are all there; null where one is not a number, or there are none. */
export const sumOf = (figures: ReadonlyArray<number | null>): number | null =>
  figures.length === 0 ? null : figures.reduce((sum, one) => (sum === null || one === null || !Number.isFinite(one) ? null : sum + one), 0)

/** The numbers of all places where a line is found. */
export const allHits = (text: string, line: string): ReadonlyArray<ReadonlyArray<string | undefined>> =>
  [...text.matchAll(patternOf(line))].map((hit) => hit.slice(1))

/** What an engine's log says where a start fails. `sign` is a piece of its text, or several that stand one after the other in a line. */
export interface StartFailure {
  /** Who says it where it is not the engine itself. */
  readonly by?: "torch" | "transformers" | "huggingface_hub" | "argparse" | "python"
  readonly sign: ReadonlyArray<string>
  /** The pieces as they stand in its sources, where a value is a part of what tells the cause. */
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
 * The named reason of a start that failed: the first of the causes that a log shows anywhere, since wrappers repeat and hide what ended an engine in the lines that
 * follow it.
 */
export const startFailureOf = (log: string, failures: ReadonlyArray<StartFailure>, version: string): NamedFailure => {
  const lines = log.split("\n")
  for (const { code, sign, text } of failures) {
    const line = lines.findLast((one) => holds(one, sign))
    if (line !== undefined) return { code, text: typeof text === "string" ? text : text(line) }
  }
  return {
    code: "engine_start_failed",
    text: `${version} ended before it was ready. Choose another runtime or revision; the end of what it said is in the log of Seatrial's operator.`
  }
}
