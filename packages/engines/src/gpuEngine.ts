import type { EngineLoad, FlagIssue, ModelConfig } from "@seatrial/domain"
import type { EngineAdapter } from "./EngineAdapter.ts"
import { parsersFor } from "./parsers.ts"
import { type QuantizationRules, takenQuantizations } from "./quantizationIssue.ts"
import { generating, otherPurpose, type RegisteredArchitectures } from "./RegisteredArchitectures.ts"
import { chosenStandInContext } from "./reference/computedContext.ts"
import { withStandIn } from "./reference/modelIssue.ts"
import { standInTokenizerIssue } from "./reference/tokenizerIssue.ts"
import { templateIssue } from "./templateIssue.ts"

/** What an engine that needs a GPU knows about models. */
interface Registered {
  readonly architectures: RegisteredArchitectures
  readonly quantization: QuantizationRules
  readonly modelIssue: (config: ModelConfig, card: EngineLoad["card"]) => string | null
}

/** The properties that are alike in all engines that need a GPU and that the reference engine simulates. */
export const gpuEngine = ({ architectures, modelIssue, quantization }: Registered) =>
  ({
    needsGpu: true,
    architectures: generating(architectures),
    extendsContext: ({ rope }: Pick<ModelConfig, "rope">) => rope !== undefined,
    otherPurpose: (architecture: string) => otherPurpose(architectures, architecture),
    quantizations: takenQuantizations(quantization),
    modelIssue: withStandIn(quantization.version, modelIssue),
    tokenizerIssue: standInTokenizerIssue,
    templateIssue,
    chosenContext: chosenStandInContext
  }) satisfies Partial<EngineAdapter>

/** The port that the network policy opens for the gateway and the operator. */
export const enginePort = 8000

/** The flags for the parsers of a model. `engine`: whose parsers. */
export const parserFlags = (engine: "vllm" | "sglang", { config }: EngineLoad, chatTemplate: string | null) => {
  const { reasoning, toolCalls } = parsersFor(engine, config.architecture, chatTemplate)
  return {
    ...(reasoning === null ? {} : { reasoning_parser: reasoning }),
    ...(toolCalls === null ? {} : { tool_call_parser: toolCalls })
  }
}

/** The issue of a flag that quantizes during loading if the checkpoint is already quantized, or null. */
export const quantizationFlagIssue = ({ config, flags }: EngineLoad): FlagIssue | null =>
  flags.quantization === undefined || config.quantization === "none"
    ? null
    : { flag: "quantization", message: `quantization requires a 16-bit checkpoint; this one is already ${config.quantization}.` }

/** The issue of a flag that distributes experts if the model has none, or null. */
export const expertsFlagIssue = (flag: string, { config }: EngineLoad): FlagIssue | null =>
  config.shape !== undefined && config.shape.experts === null
    ? { flag, message: `${flag} requires a mixture of experts; ${config.architecture} is not one.` }
    : null
