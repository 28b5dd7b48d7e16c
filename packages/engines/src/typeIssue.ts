import type { ModelConfig } from "@seatrial/domain"

/** What stands in the facts of a configuration that names no type. */
const unnamed = "unknown"

/**
 * Why an engine finds no class for a model's configuration, as a sentence; null where it may. Transformers goes by `model_type` alone (`AutoConfig.from_pretrained`). `known`:
 * architectures of which the engine knows the type by itself.
 */
export const typeIssue = (version: string, { architecture, model_type }: ModelConfig, known: ReadonlySet<string> = new Set()): string | null =>
  model_type !== unnamed || known.has(architecture) ? null : `${version} reads no config.json without a model_type, by which it finds the model's class.`
