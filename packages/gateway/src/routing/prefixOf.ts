/** Characters of a request's beginning that decide which engine's cache may know it. */
const prefixLength = 1_024

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value)

/** Appends the texts of a value, names included, until there are enough. */
const gather = (text: string, value: unknown): string => {
  if (text.length >= prefixLength) return text
  if (typeof value === "string") return `${text}${value.slice(0, prefixLength)}\n`
  if (typeof value === "number") return `${text}${value} `
  let all = text
  if (Array.isArray(value)) {
    for (const one of value) {
      if (all.length >= prefixLength) break
      all = gather(all, one)
    }
  } else if (isMembers(value)) {
    for (const name in value) {
      if (all.length >= prefixLength) break
      all = gather(`${all}${name}:`, value[name])
    }
  }
  return all
}

/** The turns up to the user's first one. */
const firstTurns = (text: string, turns: unknown): string => {
  if (!Array.isArray(turns)) return gather(text, turns)
  let all = text
  for (const turn of turns) {
    all = gather(all, turn)
    if (all.length >= prefixLength || !isMembers(turn) || turn.role === "user") break
  }
  return all
}

/**
 * What requests have in common that an engine's prefix cache may serve: `prompt_cache_key` where the caller gives one, else the beginning of tools, system prompt and first
 * user turn, or of the prompt. The parsed body of any of the paths; at most some 1,024 characters of it are looked at.
 */
export const prefixOf = (members: Members): string => {
  const { input, instructions, messages, prompt, prompt_cache_key: key, system, tools } = members
  if (typeof key === "string" && key !== "") return `key:${key.slice(0, prefixLength)}`
  let text = gather("", tools)
  text = gather(text, system)
  text = gather(text, instructions)
  return firstTurns(text, messages ?? input ?? prompt).slice(0, prefixLength)
}
