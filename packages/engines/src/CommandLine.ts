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

/** Why a value is not taken, or null; `part`: it is one of an object's members. */
const valueProblem = (name: string, argument: Argument, value: string, part: boolean): string | null => {
  if (argument === "integer") return isWhole(value) ? null : `argument --${name}: invalid int value: '${value}'`
  if (argument === "number") return value !== "" && Number.isFinite(Number(value)) ? null : `argument --${name}: invalid float value: '${value}'`
  if (argument === "json") return part || isJson(value) ? null : `argument --${name}: invalid loads value: '${value}'`
  if (typeof argument === "string" || argument.includes(value)) return null
  return `argument --${name}: invalid choice: '${value}' (choose from ${argument.map((choice) => `'${choice}'`).join(", ")})`
}

/**
 * What an engine's own parser makes of our words: the values of each argument, none of a switch. A string is its refusal. Stricter than the parser itself: a value is part of
 * the word (`--flag=value`), but those of a list, which may also follow as words of their own; and a name that is only the beginning of another's is none.
 */
export const readWords = (known: CommandLine, words: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> | string => {
  const given = new Map<string, ReadonlyArray<string>>()
  /** Where the values that follow go. */
  let open: { readonly given: string; readonly values: Array<string> } | null = null
  for (const word of words) {
    if (open !== null && !word.startsWith("-")) {
      open.values.push(word)
      continue
    }
    if (open?.values.length === 0) break
    open = null
    const match = /^--([a-z0-9_.-]+)(?:=(.*))?$/s.exec(word)
    if (match === null) return `unrecognized arguments: ${word}`
    const [, whole = "", value] = match
    // A part of a JSON argument may be named behind a dot.
    const [name = ""] = whole.split(".")
    const positive = known[name.replace(/^no-/, "")]
    const opposite = known[name.replace(/^(?:en|dis)able-/, (prefix) => (prefix === "enable-" ? "disable-" : "enable-"))]
    const argument = known[name] ?? (positive === "boolean" || positive === "pair" ? positive : opposite === "pair" ? opposite : undefined)
    if (argument === undefined) return `unrecognized arguments: ${word}`
    if (argument === "boolean" || argument === "pair" || argument === "switch") {
      if (value !== undefined) return `argument --${name}: ignored explicit argument '${value}'`
      given.set(whole, [])
      continue
    }
    if (value === undefined && argument === "list") {
      open = { given: whole, values: [] }
      given.set(whole, open.values)
      continue
    }
    if (value === undefined) return `argument --${name}: expected one argument`
    const problem = valueProblem(name, argument, value, whole !== name)
    if (problem !== null) return problem
    given.set(whole, [value])
  }
  return open?.values.length === 0 ? `argument --${open.given}: expected at least one argument` : given
}
