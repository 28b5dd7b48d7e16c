import { adapterIssue, type Candidate, everyCandidate, knowsModel, takesSettings, templateIssue, tokenizerIssue } from "./candidates.ts"
import { settingRefusal } from "./requestRefusals.ts"
import { type ServingQuestion, type ServingRefusal, servedElsewhere } from "./servingQuestion.ts"
import { unsupported } from "./unsupported.ts"

type Candidates = ReadonlyArray<Candidate>

/** A condition that a candidate must meet, and the refusal if none of the remaining candidates does. */
interface ServingRequirement {
  readonly isMet: (question: ServingQuestion, candidate: Candidate) => boolean
  /** `candidates`: those that meet all earlier requirements. Null if a later step has to explain the refusal. */
  readonly refusal: (question: ServingQuestion, candidates: Candidates) => ServingRefusal | null
}

const architectureRefusal = (question: ServingQuestion, offered: Candidates): ServingRefusal => {
  const { engines, evaluation, hostClasses } = question
  const { message, remedy } = unsupported(evaluation.facts, { offered, everywhere: everyCandidate(hostClasses, engines), engines })
  const alternative = servedElsewhere(question)
  return {
    code: "unsupported_architecture",
    message,
    remedy: alternative === null ? remedy : `Choose ${alternative.where}, which serves it.`,
    serving: alternative?.serving ?? null
  }
}

/**
 * The refusal of a file that no candidate can use. `advice`: what to do without another candidate, without its initial.
 */
const formatRefusal = (question: ServingQuestion, message: string, ability: string, advice: string): ServingRefusal => {
  const alternative = servedElsewhere(question)
  return {
    code: "unsupported_format",
    message,
    remedy: alternative === null ? `N${advice}` : `Choose ${alternative.where}, which ${ability} it, or n${advice}`,
    serving: alternative?.serving ?? null
  }
}

const adapterRefusal = (question: ServingQuestion, candidates: Candidates): ServingRefusal => {
  const { facts } = question.evaluation
  const issues = new Set(candidates.flatMap((candidate) => adapterIssue(facts, candidate) ?? []))
  const message = `The adapter ${facts.repo} cannot be served: ${[...issues].join(" ")}`
  return formatRefusal(question, message, "applies", "ame a repository with the adapter merged into its base.")
}

const tokenizerRefusal = (question: ServingQuestion, candidates: Candidates): ServingRefusal => {
  const { facts } = question.evaluation
  const issues = new Set(candidates.flatMap((candidate) => tokenizerIssue(facts, candidate) ?? []))
  const message = `The tokenizer of ${facts.repo} cannot be read: ${[...issues].join(" ")}`
  return formatRefusal(question, message, "reads", "ame a repository with a tokenizer.json.")
}

const templateRefusal = (question: ServingQuestion, candidates: Candidates): ServingRefusal => {
  const { facts } = question.evaluation
  const message = `The chat template of ${facts.repo} cannot be used: ${candidates.flatMap((candidate) => templateIssue(facts, candidate) ?? [])[0]}.`
  return formatRefusal(question, message, "uses", "ame a repository or a revision with a complete chat template.")
}

const settingsRefusal = ({ evaluation }: ServingQuestion, candidates: Candidates): ServingRefusal | null => {
  const setting = settingRefusal(evaluation, candidates)
  return setting === null ? null : { code: "unsupported_format", message: setting.message, remedy: setting.remedy, serving: setting.serving }
}

/** In the order in which refusals are reported. */
const requirements: ReadonlyArray<ServingRequirement> = [
  { isMet: ({ evaluation }, candidate) => knowsModel(evaluation.facts, candidate), refusal: architectureRefusal },
  { isMet: ({ evaluation }, candidate) => adapterIssue(evaluation.facts, candidate) === null, refusal: adapterRefusal },
  { isMet: ({ evaluation }, candidate) => tokenizerIssue(evaluation.facts, candidate) === null, refusal: tokenizerRefusal },
  { isMet: ({ evaluation }, candidate) => templateIssue(evaluation.facts, candidate) === null, refusal: templateRefusal },
  { isMet: ({ evaluation }, candidate) => takesSettings(evaluation.facts, evaluation.request, candidate), refusal: settingsRefusal }
]

/**
 * The candidates that meet every requirement, or the refusal of the first requirement that no remaining candidate
 * meets.
 */
export const narrowCandidates = (
  question: ServingQuestion,
  offered: Candidates
): { readonly candidates: Candidates } | { readonly refusal: ServingRefusal } => {
  let candidates = offered
  for (const { isMet, refusal: explain } of requirements) {
    const remaining = candidates.filter((candidate) => isMet(question, candidate))
    const refusal = remaining.length === 0 ? explain(question, candidates) : null
    if (refusal !== null) return { refusal }
    candidates = remaining
  }
  return { candidates }
}
