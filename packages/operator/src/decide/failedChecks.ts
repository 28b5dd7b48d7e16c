import { type Check, type CheckReport, FailureCode, type NamedFailure } from "@seatrial/domain"
import { changesNothing, trialBy } from "@seatrial/trial"
import { Option, Schema } from "effect"

/** What a failed row says of the model and its engine; of all others that checks failed. */
const codes: Readonly<Record<string, FailureCode>> = {
  files_match_commit: "weights_mismatch",
  tensors_complete: "weights_incomplete",
  config_coherent: "weights_incomplete",
  tokenizer_agrees: "template_mismatch",
  template_agrees: "template_mismatch",
  loaded_tensors: "output_garbage",
  text_likelihood: "output_garbage",
  adapter_effect: "adapter_not_applied",
  fidelity: "fidelity_not_run",
  golden_answers: "output_garbage",
  output_sane: "output_garbage",
  greedy_repeats: "nondeterministic_output"
}

/** What a row may say itself, before its words. */
const decodeSaid = Schema.decodeUnknownOption(
  FailureCode.pick(["cross_request_leak", "engine_hung", "nondeterministic_output", "adapter_not_applied", "fidelity_failed", "fidelity_not_run"])
)

/** What to do, as a sentence. */
const remedies: Partial<Record<FailureCode, string>> = {
  checks_failed: "The engine does not serve this model as it should; try another runtime or revision.",
  weights_mismatch: "Deploy again, so that the files are brought anew.",
  weights_incomplete: "Choose a revision whose files fit its configuration.",
  template_mismatch: "The engine does not serve this repository's tokenizer or template as they are; try another runtime.",
  output_garbage: "The checkpoint, or its support in this engine, is broken; try another revision or runtime.",
  adapter_not_applied: "The engine answers as the base alone does; try another runtime, or an adapter for this very base.",
  fidelity_failed:
    "What is served with the adapter is not base and adapter merged; try another runtime, or a repository with the adapter merged into its base.",
  fidelity_not_run: "Deploy again; if it stays, name a repository with the adapter merged into its base.",
  nondeterministic_output: "The engine's answers change by themselves; try another host class or runtime.",
  engine_hung: "Its process runs, and the engine computes nothing under the checks; where its node has processor time to spare, try another runtime.",
  cross_request_leak: "The engine mixes requests up; it must not serve. Tell the cluster's operator."
}

/** What to do where the words of a row tell more than its code. */
const closer: ReadonlyArray<readonly [FailureCode, string, string]> = [
  [
    "output_garbage",
    trialBy,
    "Two versions of the engine compute the same commit otherwise. Where this one is wrong, try another runtime; where that one was, delete the models that it was verified with, and deploy again."
  ],
  [
    "adapter_not_applied",
    changesNothing,
    "The adapter itself changes nothing, as one that was never trained (lora_B of zeros): name another revision or repository of it."
  ],
  [
    "output_garbage",
    "HTTP 5",
    "The engine breaks where numbers turn into NaN, as wrong weights make them: try another revision; if they are right, another runtime."
  ]
]

const remedyOf = (code: FailureCode, said: string): string | undefined =>
  closer.find(([of, words]) => of === code && said.includes(words))?.[2] ?? remedies[code]

/** Whether nothing was wrong but that it took too long, which says nothing of what the row is about. */
const isLate = (detail: string): boolean => detail.startsWith("not done within ")

/** Whether the engine itself broke over a request: that says nothing of what else the row is about, though wrong numbers may be why. */
const isBroken = (detail: string): boolean => /\bHTTP 5\d\d\b/.test(detail)

/** Whether it did so once: numbers that were wrong would have been so again. */
const isBrokenOnce = (detail: string): boolean => detail.startsWith("engine error, then passed")

const ofRow = (name: string, detail: string): FailureCode => {
  const code = codes[name] ?? "checks_failed"
  return isLate(detail) || isBrokenOnce(detail) || (isBroken(detail) && code !== "output_garbage") ? "checks_failed" : code
}

const codeOf = ({ detail = "", name }: Check): FailureCode => {
  const said = decodeSaid(/^([a-z_]+):/.exec(detail)?.[1])
  return Option.getOrElse(said, () => ofRow(name, detail))
}

/** Why a trial's report ends the run: the first failed row, what it expected and what came, and the names of the others. The worst fault goes first. */
export const failedChecks = ({ checks, withdrawn = [] }: CheckReport): NamedFailure => {
  // A capability that was withdrawn is no reason, unless there is no other: then it was made one.
  const wrong = checks.filter(({ passed }) => !passed)
  const required = wrong.filter(({ name }) => !withdrawn.includes(name))
  const reasons = required.length > 0 ? required : wrong
  const saying = (code: FailureCode) => reasons.find((check) => codeOf(check) === code)
  const late = isLate(reasons[0]?.detail ?? "")
  const broken = isBroken(reasons[0]?.detail ?? "")
  const first = saying("cross_request_leak") ?? (late ? saying("engine_hung") : undefined) ?? (broken ? saying("output_garbage") : undefined) ?? reasons[0]
  if (first === undefined) return { code: "checks_failed", text: "The checks did not pass." }
  const code = codeOf(first)
  const others = reasons.filter((check) => check !== first).map(({ name }) => name)
  const said = (first.detail ?? "failed").replace(/^[a-z_]+: (?=\S)/, (prefix) => (prefix === `${code}: ` ? "" : prefix))
  const parts = [`${first.name}: ${said}.`, ...(others.length === 0 ? [] : [`Failed too: ${others.join(", ")}.`]), remedyOf(code, said)]
  return { code, text: parts.filter((part) => part !== undefined).join(" ") }
}
