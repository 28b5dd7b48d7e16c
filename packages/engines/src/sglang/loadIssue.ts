import type { EngineLoad, FlagIssue } from "@seatrial/domain"
import { expertsFlagIssue, quantizationFlagIssue } from "../gpuEngine.ts"
import { sglangLimits, sglangMemory } from "./memory.ts"
import { sglangStartIssue } from "./startIssue.ts"

const chunkIssue = (load: EngineLoad): FlagIssue | null => {
  const { chunk } = sglangLimits(load)
  const page = sglangMemory.blockTokens(load)
  if (chunk === -1 || chunk % page === 0) return null
  return { flag: "chunked_prefill_size", message: `chunked_prefill_size (${chunk}) must be a multiple of page_size (${page}).` }
}

const expertsIssue = (load: EngineLoad): FlagIssue | null => {
  const { card, flags } = load
  const experts = flags.ep_size
  if (typeof experts !== "number") return null
  const needsExperts = experts > 1 ? expertsFlagIssue("ep_size", load) : null
  if (needsExperts !== null || card.gpu_count % experts === 0) return needsExperts
  return { flag: "ep_size", message: `ep_size (${experts}) must divide the ${card.gpu_count} GPUs of the host class.` }
}

const strictThinkingIssue = ({ flags }: EngineLoad): FlagIssue | null =>
  flags.enable_strict_thinking === true && flags.reasoning_parser === undefined
    ? { flag: "enable_strict_thinking", message: "enable_strict_thinking requires a reasoning_parser." }
    : null

const deterministicIssue = ({ flags }: EngineLoad): FlagIssue | null =>
  flags.enable_deterministic_inference === true && flags.attention_backend === "trtllm_mha"
    ? { flag: "attention_backend", message: "enable_deterministic_inference requires fa3, fa4, flashinfer or triton." }
    : null

/** The first flag that does not fit the model, the GPUs or another flag, or null. */
export const sglangLoadIssue = (load: EngineLoad): FlagIssue | null =>
  chunkIssue(load) ?? quantizationFlagIssue(load) ?? expertsIssue(load) ?? strictThinkingIssue(load) ?? deterministicIssue(load) ?? sglangStartIssue(load)
