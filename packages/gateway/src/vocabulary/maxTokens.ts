import type { Checking } from "./Checking.ts"

/**
 * Checks and normalizes the token limit of an answer. A limit above the model's maximum is refused. A limit of at least
 * the context length has no effect: `omit` removes it if the engine then uses the room that the prompt leaves, `cut`
 * lowers it to the context length.
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

/** Rules for several choices. */
export const checkChoices = (body: Record<string, unknown>, at: Checking): void => {
  if (body.n === 1) delete body.n
  if (body.n !== undefined && body.temperature === 0) at.invalid("more than one answer needs a temperature above 0", "n")
}
