import { Predicate } from "effect"
import type { Json } from "./ConfigReader.ts"
import { textTypes } from "./generated/configurationDefaults.ts"

/**
 * The configuration of the layers, which a multimodal model nests once or twice; and its type, if it leaves that to the
 * outer class.
 */
export const textConfig = (config: Json): { readonly text: Json; readonly assumedType: string | null } => {
  let inner = config
  let around: Json | null = null
  for (let depth = 0; depth < 3; depth++) {
    const next = ["text_config", "llm_config", "language_config", "thinker_config"].map((key) => inner[key]).find(Predicate.isObject)
    if (next === undefined) break
    around = inner
    inner = next
  }
  const type = around?.model_type
  return { text: inner, assumedType: typeof type === "string" && Object.hasOwn(textTypes, type) ? (textTypes[type] ?? null) : null }
}
