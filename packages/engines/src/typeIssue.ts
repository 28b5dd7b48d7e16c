import type { ModelConfig } from "@seatrial/domain"
import { transformersTypes } from "./generated/transformersTypes.ts"

/** What stands in the facts of a configuration that names no type. */
const unnamed = "unknown"

/** What an engine brings beside the classes of Transformers. */
export interface OwnTypes {
  readonly version: string
  /** Types of configurations that it knows by itself. */
  readonly types: ReadonlySet<string>
  /** Architectures of which it knows the type where none is named. */
  readonly architectures: ReadonlySet<string>
}

/** Why an engine finds no class for a model's configuration, as a sentence; null where it may. Transformers goes by `model_type` alone (`AutoConfig.from_pretrained`). */
export const typeIssue = ({ architectures, types, version }: OwnTypes, { architecture, model_type }: ModelConfig): string | null => {
  if (architectures.has(architecture) || types.has(model_type) || transformersTypes.has(model_type)) return null
  if (model_type === unnamed) return `${version} reads no config.json without a model_type, by which it finds the model's class.`
  return `${version} knows no model_type ${JSON.stringify(model_type.slice(0, 80))}, and neither does Transformers, by which it finds the model's class.`
}
