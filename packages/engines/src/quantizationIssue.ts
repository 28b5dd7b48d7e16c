import type { ModelConfig } from "@seatrial/domain"
import { capabilityText, computeCapability } from "./computeCapability.ts"
import type { RegisteredQuantizations } from "./RegisteredQuantizations.ts"

/** A registered method, with the least and the highest compute capability where these are not the method's own; or why there is none, as the rest of a sentence. */
export type Resolution = { readonly method: string; readonly least?: number; readonly most?: number } | { readonly problem: string }

/** How an engine at one version takes checkpoints that are quantized. */
export interface QuantizationRules {
  readonly version: string
  readonly registered: RegisteredQuantizations
  /** What it registers and nevertheless does not serve from a checkpoint, and why, as the rest of a sentence. */
  readonly refused: Readonly<Record<string, string>>
  /** Names that only checkpoints use, by the method that takes them. */
  readonly alias: Readonly<Record<string, string>>
  /** As the engine itself decides it, where that is not simply the method of that name. */
  readonly resolve: (config: ModelConfig) => Resolution | null
}

/** The methods of checkpoints that an engine takes, `none` among them. */
export const takenQuantizations = ({ alias, refused, registered }: QuantizationRules): ReadonlySet<string> =>
  new Set(["none", ...Object.keys(registered), ...Object.keys(alias)].filter((method) => !Object.hasOwn(refused, method)))

/** Why an engine does not serve a checkpoint so quantized on such a card, as a sentence; null where it does, as far as is known. */
export const quantizationIssue = (rules: QuantizationRules, config: ModelConfig, gpuPool: string): string | null => {
  const { quantization } = config
  if (quantization === "none") return null
  const refused = Object.hasOwn(rules.refused, quantization) ? rules.refused[quantization] : undefined
  if (refused !== undefined) return `${rules.version} does not serve ${quantization}: ${refused}.`
  const resolution: Resolution = rules.resolve(config) ?? { method: rules.alias[quantization] ?? quantization }
  if ("problem" in resolution) return `${rules.version} does not serve this checkpoint of ${quantization}: ${resolution.problem}.`
  const { method } = resolution
  if (!Object.hasOwn(rules.registered, method)) return `${rules.version} has no quantization ${quantization}.`
  const least = Math.max(resolution.least ?? 0, rules.registered[method] ?? 0)
  const has = computeCapability(gpuPool)
  const most = resolution.most ?? Number.POSITIVE_INFINITY
  if (has === null || (has >= least && has <= most)) return null
  const only = most === least ? "exactly " : ""
  return `${rules.version} needs a card of compute capability ${only}${capabilityText(least)} for this checkpoint of ${quantization}; ${gpuPool} has ${capabilityText(has)}.`
}

/** Whole numbers of so many bits, which the kernels for packed 32-bit words take. */
export const packedProblem = (
  { quantization_scheme: scheme }: ModelConfig,
  kernels: ReadonlyArray<{ readonly bits: number; readonly symmetric?: boolean }>
): string | null => {
  if (scheme?.bits === undefined) return null
  const { bits, symmetric } = scheme
  if (kernels.some((kernel) => kernel.bits === bits && (kernel.symmetric === undefined || symmetric === undefined || kernel.symmetric === symmetric)))
    return null
  const said = kernels.map((kernel) => `${kernel.bits}${kernel.symmetric === undefined ? "" : kernel.symmetric ? " symmetric" : " asymmetric"}`).join(", ")
  return `its weights have ${bits} bits${symmetric === undefined ? "" : symmetric ? ", symmetric" : ", asymmetric"}, and there are kernels for ${said}`
}
