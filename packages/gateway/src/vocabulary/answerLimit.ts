import { limitFields } from "@seatrial/domain"

/** Tokens that each choice of an answer may have; null if the caller sets no limit. */
export const outputLimitOf = (body: Readonly<Record<string, unknown>>): number | null => {
  for (const name of limitFields) {
    const limit = body[name]
    if (typeof limit === "number") return limit
  }
  return null
}

/**
 * The token limit of an answer. It must come first in the engine's body, so that `cutAnswer` finds it without parsing
 * the rest, which may be large.
 */
export const answerLimit = (body: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const name = limitFields.find((one) => typeof body[one] === "number")
  return name === undefined ? {} : { [name]: body[name] }
}

const first = new RegExp(`^\\{"(${limitFields.join("|")})":(\\d+)`)

/** Lowers the token limit at the start of an engine's body to `room`. Null if there is no limit or it is not higher. */
export const cutAnswer = (engineBody: string, room: number): string | null => {
  const match = first.exec(engineBody)
  if (match === null || Number(match[2]) <= room) return null
  return `{"${match[1]}":${room}${engineBody.slice(match[0].length)}`
}
