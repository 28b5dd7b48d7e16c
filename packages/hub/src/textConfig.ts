import { Predicate } from "effect"
import type { Json } from "./ConfigReader.ts"

/** The layers' own configuration, where a multimodal model's wraps it, in places twice. */
export const textConfig = (config: Json): Json => {
  let inner = config
  for (let depth = 0; depth < 3; depth++) {
    const next = ["text_config", "llm_config", "language_config", "thinker_config"].map((key) => inner[key]).find(Predicate.isObject)
    if (next === undefined) break
    inner = next
  }
  return inner
}
