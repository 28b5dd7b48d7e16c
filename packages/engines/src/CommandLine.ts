/**
 * The syntax of an argument's value. `switch`: `--flag` alone. `boolean`: also `--no-flag`. `pair`: `--enable-x` or
 * `--disable-x`. An array: one of these words.
 */
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

/** Returns why the parser refuses a value, or null. `part`: whether the value is a member of an object. */
const valueProblem = (name: string, argument: Argument, value: string, part: boolean): string | null => {
  if (argument === "integer") return isWhole(value) ? null : `argument --${name}: invalid int value: '${value}'`
  if (argument === "number") return value !== "" && Number.isFinite(Number(value)) ? null : `argument --${name}: invalid float value: '${value}'`
  if (argument === "json") return part || isJson(value) ? null : `argument --${name}: invalid loads value: '${value}'`
  if (typeof argument === "string" || argument.includes(value)) return null
  return `argument --${name}: invalid choice: '${value}' (choose from ${argument.map((choice) => `'${choice}'`).join(", ")})`
}

/** A parsed `--flag` or `--flag=value`. */
interface Flag {
  readonly fullName: string
  readonly values: Array<string>
  /** Whether the next words are values of the flag. */
  readonly takesWords: boolean
}

/** The argument with this name. `--no-x` belongs to the boolean `x`, and both forms of a pair are one argument. */
const argumentOf = (known: CommandLine, name: string): Argument | undefined => {
  if (known[name] !== undefined) return known[name]
  const positive = known[name.replace(/^no-/, "")]
  if (positive === "boolean" || positive === "pair") return positive
  const opposite = known[name.replace(/^(?:en|dis)able-/, (prefix) => (prefix === "enable-" ? "disable-" : "enable-"))]
  return opposite === "pair" ? opposite : undefined
}

/** Parses the word of a flag, or returns the reason for a refusal. */
const parseFlag = (known: CommandLine, word: string): Flag | string => {
  const match = /^--([a-z0-9_.-]+)(?:=(.*))?$/s.exec(word)
  if (match === null) return `unrecognized arguments: ${word}`
  const [, fullName = "", value] = match
  // `--argument.member=value` sets one member of a JSON argument.
  const [name = ""] = fullName.split(".")
  const argument = argumentOf(known, name)
  if (argument === undefined) return `unrecognized arguments: ${word}`
  if (argument === "boolean" || argument === "pair" || argument === "switch")
    return value === undefined ? { fullName, values: [], takesWords: false } : `argument --${name}: ignored explicit argument '${value}'`
  if (value === undefined) return argument === "list" ? { fullName, values: [], takesWords: true } : `argument --${name}: expected one argument`
  return valueProblem(name, argument, value, fullName !== name) ?? { fullName, values: [value], takesWords: false }
}

/**
 * Parses a command line as the engine does. Returns the values of each argument (an empty list for a switch), or the
 * reason for a refusal as a string. Two rules are stricter than in the engine: only a list may have its values in
 * separate words, all others need `--flag=value`; and an abbreviated name is refused.
 */
export const parseCommandLine = (known: CommandLine, words: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> | string => {
  const values = new Map<string, ReadonlyArray<string>>()
  /** The list argument that takes the next words. */
  let open: Flag | null = null
  for (const word of words) {
    if (open !== null && !word.startsWith("-")) {
      open.values.push(word)
      continue
    }
    if (open?.values.length === 0) break
    const flag = parseFlag(known, word)
    if (typeof flag === "string") return flag
    values.set(flag.fullName, flag.values)
    open = flag.takesWords ? flag : null
  }
  return open?.values.length === 0 ? `argument --${open.fullName}: expected at least one argument` : values
}
