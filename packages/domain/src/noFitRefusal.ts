import { type Attempt, attempt, type Candidate, candidatesOf, type EvaluationInput, gpus, isSuccess } from "./candidates.ts"
import { fitRemedy, type Remedy } from "./fitRemedy.ts"
import { classesInWords } from "./hostClassChoice.ts"
import { type ServingQuestion, type ServingRefusal, servedElsewhere } from "./servingQuestion.ts"
import { sizeInWords } from "./sizeInWords.ts"

type Attempts = ReadonlyArray<Attempt>

/**
 * The host class that would serve with the fewest GPUs if the organization's limit were raised; null if no host class
 * has enough memory regardless of the limit.
 */
const gpusWithoutLimit = (input: EvaluationInput, attempts: ReadonlyArray<Candidate>) => {
  const able = attempts.map((candidate) => attempt({ ...input, gpuLimit: null }, candidate)).filter(isSuccess)
  const [least] = able.map(({ hostClass }) => hostClass).toSorted((a, b) => a.gpu_count - b.gpu_count)
  return least === undefined ? null : { name: least.name, count: least.gpu_count }
}

/** Other settings or host classes on which the model fits. */
const remedyFor = (question: ServingQuestion, candidates: ReadonlyArray<Candidate>): Remedy => {
  const { engines, evaluation, hostClasses, requested } = question
  const alternatives = candidatesOf(
    hostClasses.filter((hostClass) => !requested.includes(hostClass)),
    engines,
    evaluation.request.runtime
  )
  const fitting = fitRemedy(evaluation, candidates, alternatives)
  const alternative = fitting.serving === null ? servedElsewhere(question) : null
  return alternative === null ? fitting : { message: `Choose ${alternative.where}, which has room for it.`, serving: alternative.serving }
}

/** The organization's GPU limit is the reason. */
const limitRefusal = ({ evaluation }: ServingQuestion, attempts: Attempts, remedy: Remedy): ServingRefusal | null => {
  const { gpuLimit } = evaluation
  const needed = gpusWithoutLimit(evaluation, attempts)
  if (needed === null || gpuLimit === null || gpuLimit === undefined) return null
  const raise = `sk the installation's administrators for a limit of at least ${gpus(needed.count)} (\`seatrial admin limits set\`)`
  return {
    code: "does_not_fit",
    message: `The organization may hold ${gpus(gpuLimit)} at once, and an engine on ${needed.name} takes ${needed.count}.`,
    remedy: remedy.serving === null ? `A${raise}.` : `${remedy.message} Otherwise, a${raise}.`,
    serving: remedy.serving
  }
}

/** No engine could start on any of the host classes even if they were idle. */
const oversizeRefusal = (_question: ServingQuestion, attempts: Attempts, remedy: Remedy): ServingRefusal | null => {
  const problems = attempts.map(({ oversize }) => oversize)
  const [message] = problems
  if (message === undefined || message === null || problems.includes(null)) return null
  return { code: "does_not_fit", message, remedy: remedy.message, serving: remedy.serving }
}

/** The model cannot be split over the GPUs of any of the host classes. */
const splitRefusal = ({ evaluation, order }: ServingQuestion, attempts: Attempts, remedy: Remedy): ServingRefusal | null => {
  const problems = attempts.map(({ result }) => ("fit" in result ? null : result.indivisible))
  const [problem] = problems
  if (problem === undefined || problem === null || problems.includes(null)) return null
  const message = `${evaluation.facts.repo} cannot be split over the GPUs of ${order === null ? "any host class" : classesInWords(order)}: ${problem}.`
  return { code: "does_not_fit", message, remedy: remedy.message, serving: remedy.serving }
}

/** The GPUs have too little memory. */
const memoryRefusal = ({ evaluation, order }: ServingQuestion, attempts: Attempts, remedy: Remedy): ServingRefusal => {
  const { facts, request } = evaluation
  // Only host classes that were evaluated: others may be larger but lack the runtime.
  const tried = attempts.filter((candidate) => candidate.oversize === null)
  const largest = Math.max(...tried.map(({ hostClass }) => hostClass.gpu_memory_bytes * hostClass.gpu_count))
  const which = request.runtime === undefined ? "any host class" : `any host class with the runtime ${request.runtime}`
  const where = order === null ? `${which} (the largest has ${sizeInWords(largest)})` : `${classesInWords(order)} (${sizeInWords(largest)})`
  const context = request.max_context === undefined ? "" : ` and ${request.max_context} tokens of context`
  const basis = tried.every(({ engine }) => engine.memory.unmeasured === true) ? " This estimate was compared with no measured start of the engine." : ""
  const message = `${sizeInWords(facts.weights_bytes)} of weights${context} do not fit ${where}.${basis}`
  return { code: "does_not_fit", message, remedy: remedy.message, serving: remedy.serving }
}

/** Why the model fits on none of the candidates. `attempts`: the evaluation of each of them. */
export const noFitRefusal = (question: ServingQuestion, candidates: ReadonlyArray<Candidate>, attempts: Attempts): ServingRefusal => {
  const remedy = remedyFor(question, candidates)
  return (
    limitRefusal(question, attempts, remedy) ??
    oversizeRefusal(question, attempts, remedy) ??
    splitRefusal(question, attempts, remedy) ??
    memoryRefusal(question, attempts, remedy)
  )
}
