import { type CheckOutcome, type CheckReport, type FailureCode, isFailedCheck, type NamedFailure } from "@seatrial/domain"

/** The remedy for each code, as a sentence. */
const remedies = {
  checks_failed: "The engine does not serve this model correctly; try another runtime or revision.",
  weights_mismatch: "Deploy again, to download the files again.",
  weights_incomplete: "Choose a revision whose files match its configuration.",
  template_mismatch: "The engine does not apply this repository's tokenizer or template correctly; try another runtime.",
  output_garbage: "The checkpoint, or its support in this engine, is broken; try another revision or runtime.",
  adapter_not_applied: "The engine answers like the base alone; try another runtime, or an adapter for exactly this base.",
  fidelity_failed: "The engine with the adapter does not match the merged model; try another runtime, or a repository with the adapter merged into its base.",
  fidelity_not_run: "Deploy again; if the problem persists, use a repository with the adapter merged into its base.",
  nondeterministic_output: "The engine's answers are not deterministic; try another host class or runtime.",
  engine_hung: "The engine's process runs, but it computed nothing during the checks. If the node was busy, deploy again. Otherwise try another runtime.",
  trial_unavailable:
    "The engine was still computing, and the model is not at fault. Deploy again when the node is less busy, or use a faster host class or a shorter context.",
  cross_request_leak: "The engine mixes up requests and must not serve. Contact the cluster administrator."
} satisfies Partial<Record<FailureCode, string>>

/**
 * The failure code of each check that points to the model or the engine. All other checks fail with `checks_failed`.
 */
export const codes: Readonly<Record<string, keyof typeof remedies>> = {
  files_match_commit: "weights_mismatch",
  tensors_complete: "weights_incomplete",
  config_coherent: "weights_incomplete",
  tokenizer_agrees: "template_mismatch",
  template_agrees: "template_mismatch",
  loaded_tensors: "output_garbage",
  text_likelihood: "output_garbage",
  far_likelihood: "output_garbage",
  reference_agrees: "output_garbage",
  adapter_effect: "adapter_not_applied",
  fidelity: "fidelity_not_run",
  golden_answers: "output_garbage",
  output_sane: "output_garbage",
  greedy_repeats: "nondeterministic_output"
}

/** The remedy if the cause is more specific than the code. */
const closerRemedies: Readonly<Record<NonNullable<CheckOutcome["cause"]> | "engine_error", string>> = {
  other_engine_version:
    "Two versions of the engine give different answers for the same commit. If this version is wrong, try another runtime. If the other version is wrong, delete the models that were verified with it, and deploy again.",
  adapter_without_effect: "The adapter itself has no effect: it was never trained (lora_B is all zeros). Use another revision or adapter.",
  far_positions:
    "The model works near the start of its context, but not as far as it is served. Request a shorter `max_context`, or try another runtime or revision.",
  engine_error: "Wrong weights can produce NaN values, on which this engine fails. Try another revision; if the weights are right, try another runtime."
}

interface FailedCheck {
  readonly outcome: CheckOutcome
  readonly code: FailureCode
}

/**
 * Whether the engine still computed when the check timed out. The machine is slow, and the check says nothing about the
 * model or the engine.
 */
const isSlow = ({ isComputing, outcome }: CheckOutcome): boolean => outcome === "timeout" && isComputing === true

const codeOf = ({ code, isReproduced, name, outcome, ...evidence }: CheckOutcome): FailureCode => {
  const own = codes[name] ?? "checks_failed"
  if (code !== undefined) return code
  if (outcome === "timeout") return evidence.isComputing === true ? "trial_unavailable" : "checks_failed"
  if (outcome === "hung") return "engine_hung"
  if (outcome === "flaky") return "nondeterministic_output"
  // Wrong numbers break the engine every time, and say nothing about other checks.
  if (outcome === "engine_error") return isReproduced === true && own === "output_garbage" ? own : "checks_failed"
  return own
}

/** The failed checks that may be the reason, in order. */
const reasonsOf = ({ outcomes }: CheckReport): ReadonlyArray<FailedCheck> => {
  const failed = outcomes.filter(isFailedCheck).map((outcome): FailedCheck => ({ outcome, code: codeOf(outcome) }))
  const required = failed.filter(({ outcome }) => outcome.class === "required")
  // A withdrawn capability counts only if no other check failed: then the installation's settings made it a reason.
  return required.length > 0 ? required : failed.filter(({ outcome }) => outcome.class === "capability")
}

/**
 * The check that explains the failure best. Text of another request in an answer is the worst fault. On a slow machine,
 * faults that only appear as timeouts do not count. A hanging engine explains checks without an answer, and wrong
 * numbers explain an engine that breaks.
 */
const bestExplanation = (reasons: ReadonlyArray<FailedCheck>): FailedCheck | undefined => {
  const saying = (code: FailureCode) => reasons.find((reason) => reason.code === code)
  const isMachineSlow = reasons.some(({ outcome }) => isSlow(outcome))
  const isByTime = ({ isClockBound, outcome }: CheckOutcome) => outcome === "timeout" || outcome === "hung" || isClockBound === true
  const [first] = isMachineSlow ? reasons.filter(({ outcome }) => !isByTime(outcome)) : reasons
  const leak = saying("cross_request_leak")
  if (leak !== undefined) return leak
  if (first === undefined) return reasons.find(({ outcome }) => isSlow(outcome))
  if (first.outcome.outcome === "timeout") return saying("engine_hung") ?? first
  return first.outcome.outcome === "engine_error" ? (saying("output_garbage") ?? first) : first
}

const remedyByCode: Partial<Record<FailureCode, string>> = remedies

const remedyOf = ({ code, outcome: { cause, outcome } }: FailedCheck): string | undefined => {
  if (cause !== undefined) return closerRemedies[cause]
  return outcome === "engine_error" && code === "output_garbage" ? closerRemedies.engine_error : remedyByCode[code]
}

/**
 * The failure of a trial: the most informative failed check, what it expected, what it observed, and the names of the
 * other failed checks.
 */
export const failedChecks = (report: CheckReport): NamedFailure => {
  const reasons = reasonsOf(report)
  const first = bestExplanation(reasons)
  if (first === undefined) return { code: "checks_failed", text: "The checks did not pass." }
  const { code, outcome } = first
  const { detail = "failed", name } = outcome
  const otherNames = reasons.filter((reason) => reason !== first).map((reason) => reason.outcome.name)
  const parts = [`${name}: ${detail}.`, ...(otherNames.length === 0 ? [] : [`Also failed: ${otherNames.join(", ")}.`]), remedyOf(first)]
  return { code, text: parts.filter((part) => part !== undefined).join(" ") }
}
