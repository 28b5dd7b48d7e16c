import { instructionFields, promptFields } from "@seatrial/domain"

/** Characters at the start of a request that decide which engine is preferred. */
export const prefixLength = 1_024

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value)

/** Appends the texts of a value, including member names, up to `prefixLength`. */
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

/** The prompt, or its messages up to and including the first one of the user. */
const firstTurns = (text: string, members: Members): string => {
  let turns: unknown
  for (const name of promptFields) turns ??= members[name]
  if (!Array.isArray(turns)) return gather(text, turns)
  let all = text
  for (const turn of turns) {
    all = gather(all, turn)
    if (all.length >= prefixLength || !isMembers(turn) || turn.role === "user") break
  }
  return all
}

/**
 * The prefix that an engine's prefix cache may hold already: `prompt_cache_key` if the caller sends one, else the start
 * of tools, system prompt and first user message, or of the prompt. Accepts the parsed body of any inference path and
 * reads about 1,024 characters of it.
 */
export const prefixOf = (members: Members): string => {
  const { prompt_cache_key: key, tools } = members
  if (typeof key === "string" && key !== "") return `key:${key.slice(0, prefixLength)}`
  let text = gather("", tools)
  for (const name of instructionFields) text = gather(text, members[name])
  return firstTurns(text, members).slice(0, prefixLength)
}
