import type { Checking } from "./Checking.ts"

/**
 * Checks and normalizes the token limit of an answer. A limit above the model's maximum is refused. A limit of at least
 * the context length has no effect: `omit` removes it if the engine then uses the room that the prompt leaves, `cut`
 * lowers it to the context length.
 */
export const limitTokens = (body: Record<string, unknown>, at: Checking, name: string, atContextLength: "omit" | "cut"): void => {
  const limit = body[name]
  if (typeof limit !== "number") return
  const { capabilities, maxModelLen } = at.target
  const most = capabilities.max_output_tokens
  if (most !== null && limit > most) at.invalid(`the model generates at most ${most} tokens`, name)
  if (limit < maxModelLen) return
  if (atContextLength === "omit") delete body[name]
  else body[name] = maxModelLen
}

/** Rules for several choices. */
export const checkChoices = (body: Record<string, unknown>, at: Checking): void => {
  if (body.n === 1) delete body.n
  if (body.n !== undefined && body.temperature === 0) at.invalid("more than one choice requires a temperature above 0", "n")
}
