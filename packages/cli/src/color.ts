/** ANSI color codes of the states of the API. */
const colors: Readonly<Record<string, number>> = {
  activated: 32,
  active: 32,
  completed: 32,
  succeeded: 32,
  failed: 31,
  refused: 31,
  disabled: 31,
  suspended: 31,
  cancelled: 33,
  waiting: 33,
  queued: 33,
  pending: 33,
  running: 36
}

/** A state that fills a column. */
const state = new RegExp(`(?<=^| {2})(${Object.keys(colors).join("|")})(?= {2}|$)`, "gu")

/** Whether standard output is a terminal with colors that are not disabled (no-color.org). */
const isColored = (): boolean => process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb"

const paint = (code: number, text: string) => `\u001b[${code}m${text}\u001b[0m`

/**
 * Colors states and, if `hasHeader`, prints the first line in bold. Returns the lines unchanged if standard output is
 * not a terminal.
 */
export const inColor = (lines: ReadonlyArray<string>, hasHeader: boolean, colored = isColored()): ReadonlyArray<string> =>
  colored ? lines.map((line, index) => (hasHeader && index === 0 ? paint(1, line) : line.replace(state, (word) => paint(colors[word] ?? 0, word)))) : lines
