/** How an argument's value is written: `switch` as `--flag` alone, `boolean` also as `--no-flag`, `pair` also as `--disable-x` for `--enable-x`; of words, one of them. */
export type Argument = "boolean" | "pair" | "switch" | "integer" | "number" | "text" | "json" | "list" | "object" | ReadonlyArray<string>

/** The arguments that an engine's own parser knows, without their two hyphens. */
export type CommandLine = Readonly<Record<string, Argument>>

const isWhole = (text: string) => /^-?\d+$/.test(text)

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/**
 * Why an engine's own parser refuses a word of ours, or null. Stricter than the parser itself: a value is part of the word (`--flag=value`), and a name that is only the
 * beginning of another's is none.
 */
export const argumentProblem = (known: CommandLine, word: string): string | null => {
  const match = /^--([a-z0-9_.-]+)(?:=(.*))?$/s.exec(word)
  if (match === null) return `unrecognized arguments: ${word}`
  const [, given = "", value] = match
  // A part of a JSON argument may be named behind a dot.
  const [name = ""] = given.split(".")
  const positive = known[name.replace(/^no-/, "")]
  const opposite = known[name.replace(/^(?:en|dis)able-/, (prefix) => (prefix === "enable-" ? "disable-" : "enable-"))]
  const argument = known[name] ?? (positive === "boolean" || positive === "pair" ? positive : opposite === "pair" ? opposite : undefined)
  if (argument === undefined) return `unrecognized arguments: ${word}`
  if (argument === "boolean" || argument === "pair" || argument === "switch") {
    return value === undefined ? null : `argument --${name}: ignored explicit argument '${value}'`
  }
  if (value === undefined) return `argument --${name}: expected one argument`
  if (argument === "integer") return isWhole(value) ? null : `argument --${name}: invalid int value: '${value}'`
  if (argument === "number") return value !== "" && Number.isFinite(Number(value)) ? null : `argument --${name}: invalid float value: '${value}'`
  if (argument === "json") return given !== name || isJson(value) ? null : `argument --${name}: invalid loads value: '${value}'`
  if (typeof argument === "string" || argument.includes(value)) return null
  return `argument --${name}: invalid choice: '${value}' (choose from ${argument.map((choice) => `'${choice}'`).join(", ")})`
}
