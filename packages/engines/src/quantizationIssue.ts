import type { ModelConfig } from "@seatrial/domain"
import { capabilityText, computeCapability } from "./computeCapability.ts"
import type { RegisteredQuantizations } from "./RegisteredQuantizations.ts"

/**
 * A registered method, with minimum and maximum compute capability if they differ from those of the method; or the
 * reason for a refusal, as the rest of a sentence.
 */
export type Resolution = { readonly method: string; readonly least?: number; readonly most?: number } | { readonly problem: string }

/** How one version of an engine reads quantized checkpoints. */
export interface QuantizationRules {
  readonly version: string
  readonly registered: RegisteredQuantizations
  /** Registered methods that are not served, with the reason as the rest of a sentence. */
  readonly refused: Readonly<Record<string, string>>
  /** Method names that occur only in checkpoints, by the registered method. */
  readonly alias: Readonly<Record<string, string>>
  /** The engine's own choice of the method, if it is not the method with the name in the checkpoint. */
  readonly resolve: (config: ModelConfig) => Resolution | null
}

/** The methods of checkpoints that an engine reads, including `none`. */
export const takenQuantizations = ({ alias, refused, registered }: QuantizationRules): ReadonlySet<string> =>
  new Set(["none", ...Object.keys(registered), ...Object.keys(alias)].filter((method) => !Object.hasOwn(refused, method)))

/** The method that the engine uses for a checkpoint, or the reason for a refusal as a sentence. */
const methodOf = (rules: QuantizationRules, config: ModelConfig): Exclude<Resolution, { readonly problem: string }> | string => {
  const { quantization } = config
  const refused = Object.hasOwn(rules.refused, quantization) ? rules.refused[quantization] : undefined
  if (refused !== undefined) return `${rules.version} does not serve ${quantization}: ${refused}.`
  const resolution: Resolution = rules.resolve(config) ?? { method: rules.alias[quantization] ?? quantization }
  if ("problem" in resolution) return `${rules.version} does not serve this checkpoint of ${quantization}: ${resolution.problem}.`
  return Object.hasOwn(rules.registered, resolution.method) ? resolution : `${rules.version} has no quantization ${quantization}.`
}

/**
 * Why an engine does not serve this quantized checkpoint on a GPU of this pool, as a sentence; null if it does or if
 * that is unknown.
 */
export const quantizationIssue = (rules: QuantizationRules, config: ModelConfig, gpuPool: string): string | null => {
  const { quantization } = config
  if (quantization === "none") return null
  const resolution = methodOf(rules, config)
  if (typeof resolution === "string") return resolution
  const least = Math.max(resolution.least ?? 0, rules.registered[resolution.method] ?? 0)
  const most = resolution.most ?? Number.POSITIVE_INFINITY
  const has = computeCapability(gpuPool)
  if (has === null || (has >= least && has <= most)) return null
  const only = most === least ? "exactly " : ""
  return `${rules.version} needs a card of compute capability ${only}${capabilityText(least)} for this checkpoint of ${quantization}; ${gpuPool} has ${capabilityText(has)}.`
}

/** Checks whole-number weights against the kernels for packed 32-bit words. Returns the rest of a sentence, or null. */
export const packedProblem = (
  { quantization_scheme: scheme }: ModelConfig,
  kernels: ReadonlyArray<{ readonly bits: number; readonly symmetric?: boolean }>
): string | null => {
  if (scheme?.bits === undefined) return null
  const { bits, symmetric } = scheme
  if (kernels.some((kernel) => kernel.bits === bits && (kernel.symmetric === undefined || symmetric === undefined || kernel.symmetric === symmetric)))
    return null
  const supported = kernels.map((kernel) => `${kernel.bits}${kernel.symmetric === undefined ? "" : kernel.symmetric ? " symmetric" : " asymmetric"}`).join(", ")
  return `its weights have ${bits} bits${symmetric === undefined ? "" : symmetric ? ", symmetric" : ", asymmetric"}, but there are kernels only for ${supported}`
}
