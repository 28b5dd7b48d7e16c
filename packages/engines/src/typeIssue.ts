import type { ModelConfig } from "@seatrial/domain"
import { transformersTypes } from "./generated/transformersTypes.ts"

/** The type in the facts of a configuration that names none. */
const unnamed = "unknown"

/** Model types that an engine supports in addition to those of Transformers. */
export interface OwnTypes {
  readonly version: string
  /** Configuration types with a class in the engine. */
  readonly types: ReadonlySet<string>
  /** Architectures whose type the engine derives if the configuration names none. */
  readonly architectures: ReadonlySet<string>
}

/**
 * Why an engine finds no class for the configuration of a model, as a sentence; null if it may find one. Transformers
 * uses only `model_type` (`AutoConfig.from_pretrained`).
 */
export const typeIssue = ({ architectures, types, version }: OwnTypes, { architecture, model_type }: ModelConfig): string | null => {
  if (architectures.has(architecture) || types.has(model_type) || transformersTypes.has(model_type)) return null
  if (model_type === unnamed) return `${version} needs a model_type in config.json to find the model's class.`
  return `${version} has no class for the model_type ${JSON.stringify(model_type.slice(0, 80))}, and neither has its version of Transformers.`
}
