import type { EngineLoad, FlagIssue } from "@seatrial/domain"
import { expertsFlagIssue, quantizationFlagIssue } from "../gpuEngine.ts"
import { vllmLimits } from "./memory.ts"
import { release } from "./release.ts"
import { vllmStartIssue } from "./startIssue.ts"

const stepIssue = (load: EngineLoad): FlagIssue | null => {
  const { flags, maxContext } = load
  const { sequences, stepTokens } = vllmLimits(release, load)
  const requestedSequences = flags.max_num_seqs
  if (typeof requestedSequences === "number" && requestedSequences > sequences) {
    const message = `max_num_batched_tokens (${stepTokens}) must be at least max_num_seqs (${requestedSequences}), because each running sequence needs at least one token in every step.`
    return { flag: "max_num_batched_tokens", message }
  }
  if (flags.enable_chunked_prefill !== false || stepTokens >= maxContext) return null
  const message = `Without chunked prefill a step must hold the longest prompt: max_num_batched_tokens (${stepTokens}) must be at least the context (${maxContext}).`
  return { flag: "enable_chunked_prefill", message }
}

const expertsIssue = (load: EngineLoad): FlagIssue | null =>
  load.flags.enable_expert_parallel === true ? expertsFlagIssue("enable_expert_parallel", load) : null

const thresholdIssue = ({ flags: { long_prefill_token_threshold: threshold }, maxContext }: EngineLoad): FlagIssue | null =>
  typeof threshold === "number" && threshold > maxContext
    ? {
        flag: "long_prefill_token_threshold",
        message: `long_prefill_token_threshold (${threshold}) must not be above the context (${maxContext}).`
      }
    : null

const strictToolsIssue = ({ flags }: EngineLoad): FlagIssue | null =>
  flags.tool_strict_level !== undefined && flags.tool_call_parser === undefined
    ? { flag: "tool_strict_level", message: "tool_strict_level requires a tool_call_parser." }
    : null

/** The first flag that does not fit the model, the GPUs or another flag, or null. */
export const vllmLoadIssue = (load: EngineLoad): FlagIssue | null =>
  stepIssue(load) ?? quantizationFlagIssue(load) ?? expertsIssue(load) ?? thresholdIssue(load) ?? strictToolsIssue(load) ?? vllmStartIssue(load)
