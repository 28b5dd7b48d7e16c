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

/**
 * Parses a command line as the engine does. Returns the values of each argument (an empty list for a switch), or the
 * reason for a refusal as a string. Two rules are stricter than those of the engine: only a list may have its values in
 * separate words, all others need `--flag=value`; and an abbreviated name is refused.
 */
export const parseCommandLine = (known: CommandLine, words: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> | string => {
  const values = new Map<string, ReadonlyArray<string>>()
  /** The list argument that takes the next words. */
  let open: { readonly name: string; readonly values: Array<string> } | null = null
  for (const word of words) {
    if (open !== null && !word.startsWith("-")) {
      open.values.push(word)
      continue
    }
    if (open?.values.length === 0) break
    open = null
    const match = /^--([a-z0-9_.-]+)(?:=(.*))?$/s.exec(word)
    if (match === null) return `unrecognized arguments: ${word}`
    const [, fullName = "", value] = match
    // `--argument.member=value` sets one member of a JSON argument.
    const [name = ""] = fullName.split(".")
    const positive = known[name.replace(/^no-/, "")]
    const opposite = known[name.replace(/^(?:en|dis)able-/, (prefix) => (prefix === "enable-" ? "disable-" : "enable-"))]
    const argument = known[name] ?? (positive === "boolean" || positive === "pair" ? positive : opposite === "pair" ? opposite : undefined)
    if (argument === undefined) return `unrecognized arguments: ${word}`
    if (argument === "boolean" || argument === "pair" || argument === "switch") {
      if (value !== undefined) return `argument --${name}: ignored explicit argument '${value}'`
      values.set(fullName, [])
      continue
    }
    if (value === undefined && argument === "list") {
      open = { name: fullName, values: [] }
      values.set(fullName, open.values)
      continue
    }
    if (value === undefined) return `argument --${name}: expected one argument`
    const problem = valueProblem(name, argument, value, fullName !== name)
    if (problem !== null) return problem
    values.set(fullName, [value])
  }
  return open?.values.length === 0 ? `argument --${open.name}: expected at least one argument` : values
}
