import type { Checking } from "./Checking.ts"

/**
 * The most tokens of an answer: refused above what the model may write. What is not below the context cannot change the answer: then `whole` leaves it out, so that the
 * engine takes what the prompt leaves, where it would not by itself it is the context.
 */
export const limitTokens = (body: Record<string, unknown>, at: Checking, name: string, whole: "omit" | "cut"): void => {
  const asked = body[name]
  if (typeof asked !== "number") return
  const { capabilities, maxModelLen } = at.target
  const most = capabilities.max_output_tokens
  if (most !== null && asked > most) at.invalid(`the model writes ${most} tokens at most`, name)
  if (asked < maxModelLen) return
  if (whole === "omit") delete body[name]
  else body[name] = maxModelLen
}

/** What holds for several answers at once. */
export const checkChoices = (body: Record<string, unknown>, at: Checking): void => {
  if (body.n === 1) delete body.n
  if (body.n !== undefined && body.temperature === 0) at.invalid("more than one answer needs a temperature above 0", "n")
}
