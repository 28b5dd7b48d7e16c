/** What limits the answer, on each path its own. */
const names = ["max_completion_tokens", "max_tokens", "max_output_tokens"] as const

/** Tokens that each choice of an answer may have; null if the caller sets no limit. */
export const outputLimitOf = (body: Readonly<Record<string, unknown>>): number | null => {
  for (const name of names) {
    const limit = body[name]
    if (typeof limit === "number") return limit
  }
  return null
}

/** The limit of an answer, to stand first in the engine's body: there `cutAnswer` finds it without reading the rest, which may be large. */
export const answerLimit = (body: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const name = names.find((one) => typeof body[one] === "number")
  return name === undefined ? {} : { [name]: body[name] }
}

const first = /^\{"(max_completion_tokens|max_tokens|max_output_tokens)":(\d+)/

/** An engine's body with room for so many tokens of answer only; null where it does not begin with a limit above that. */
export const cutAnswer = (engineBody: string, room: number): string | null => {
  const found = first.exec(engineBody)
  if (found === null || Number(found[2]) <= room) return null
  return `{"${found[1]}":${room}${engineBody.slice(found[0].length)}`
}
