import type { EngineContract } from "./engineContract.ts"
import type { HostClass } from "./hostClass.ts"
import { classesInWords, classOrder, isClassChoice } from "./hostClassChoice.ts"
import { maxYarnFactor, type Runtime, type ServingRequest } from "./serving.ts"
import { leastContext } from "./trial.ts"

/**
 * A problem of serving settings that does not depend on the model. `unknown`: the settings name something that this
 * installation does not have.
 */
export interface ServingProblem {
  readonly kind: "unknown" | "invalid"
  /** Path in the request body. */
  readonly param: string
  readonly message: string
}

/**
 * Settings that are invalid for every model: a context too short for the trial, or a factor above the maximum; null if
 * there are none.
 */
export const rangeProblem = ({ max_context: context, yarn }: ServingRequest): ServingProblem | null => {
  if (context !== undefined && context < leastContext) {
    const message = `The context must be at least ${leastContext} tokens, because the trial needs as many.`
    return { kind: "invalid", param: "serving.max_context", message }
  }
  if (yarn !== undefined && yarn.factor > maxYarnFactor) {
    return { kind: "invalid", param: "serving.yarn.factor", message: `The factor of yarn must be at most ${maxYarnFactor}.` }
  }
  return null
}

/** Suggests the runtimes of host classes that accept what the chosen ones do not. */
const orRuntime = (alternatives: ReadonlyArray<EngineContract>): string =>
  alternatives.length === 0 ? "" : ` Request the runtime ${[...new Set(alternatives.map((engine) => engine.runtime))].sort().join(" or ")}, which accepts it.`

const runtimesOf = (hostClass: HostClass): ReadonlyArray<Runtime> => hostClass.runtimes.map((offered) => offered.runtime)

const sortedNames = (names: Iterable<string>): ReadonlyArray<string> => [...new Set(names)].sort()

/** No host class that the settings allow has the requested runtime. */
const runtimeProblem = (serving: ServingRequest, classes: ReadonlyArray<HostClass>): ServingProblem | null => {
  const { runtime } = serving
  if (runtime === undefined || classes.length === 0 || classes.some((hostClass) => runtimesOf(hostClass).includes(runtime))) return null
  const names = classOrder(serving)
  const subject = names === null ? "No host class has" : names.length === 1 ? `${names[0]} does not have` : `None of ${classesInWords(names)} has`
  const message = `${subject} the runtime ${runtime}. Available: ${sortedNames(classes.flatMap(runtimesOf)).join(", ")}.`
  return { kind: "unknown", param: "serving.runtime", message }
}

/** The engines that the settings may select, and the others that their host classes offer. */
interface Selection {
  readonly candidates: ReadonlyArray<EngineContract>
  readonly alternatives: ReadonlyArray<EngineContract>
}

const selectionOf = ({ runtime }: ServingRequest, classes: ReadonlyArray<HostClass>, engines: ReadonlyArray<EngineContract>): Selection => {
  const chosen = new Set(classes.map((hostClass) => runtime ?? hostClass.runtimes[0].runtime))
  const offered = new Set(classes.flatMap(runtimesOf))
  const candidates = engines.filter((engine) => (runtime === undefined ? chosen.size === 0 || chosen.has(engine.runtime) : engine.runtime === runtime))
  const alternatives = engines.filter((engine) => runtime === undefined && offered.has(engine.runtime) && !candidates.includes(engine))
  return { candidates, alternatives }
}

const cacheTypeProblem = ({ kv_cache_dtype: dtype }: ServingRequest, { alternatives, candidates }: Selection): ServingProblem | null => {
  if (dtype === undefined || candidates.length === 0 || candidates.some((engine) => engine.kvCacheDtypes.has(dtype))) return null
  const taken = sortedNames(candidates.flatMap((engine) => [...engine.kvCacheDtypes])).join(", ")
  const runtimes = sortedNames(candidates.map((candidate) => candidate.runtime))
  const [refuses, accepts] = runtimes.length === 1 ? ["does not take", "it takes"] : ["do not take", "they take"]
  const more = orRuntime(alternatives.filter((alternative) => alternative.kvCacheDtypes.has(dtype)))
  return {
    kind: "unknown",
    param: "serving.kv_cache_dtype",
    message: `${runtimes.join(" and ")} ${refuses} the KV cache type ${dtype}; ${accepts} ${taken}.${more}`
  }
}

const flagProblem = ({ engine_flags: flags }: ServingRequest, { alternatives, candidates }: Selection): ServingProblem | null => {
  if (flags === undefined) return null
  const issues = candidates.map((engine) => engine.flagIssue(flags))
  const [issue] = issues
  if (issue === undefined || issue === null || issues.includes(null)) return null
  const more = orRuntime(alternatives.filter((alternative) => alternative.flagIssue(flags) === null))
  return { kind: "invalid", param: `serving.engine_flags.${issue.flag}`, message: `${issue.message}${more}` }
}

/**
 * The first problem of serving settings that is apparent from the configured host classes and engines, or null. A flag
 * or cache type is wrong if every engine that the settings may select refuses it.
 */
export const servingProblem = (
  serving: ServingRequest,
  hostClasses: ReadonlyArray<HostClass>,
  engines: ReadonlyArray<EngineContract>
): ServingProblem | null => {
  const names = classOrder(serving)
  const classes = names === null ? hostClasses : hostClasses.filter((hostClass) => names.includes(hostClass.name))
  const selection = selectionOf(serving, classes, engines)
  return rangeProblem(serving) ?? runtimeProblem(serving, classes) ?? cacheTypeProblem(serving, selection) ?? flagProblem(serving, selection)
}

/** Formats host classes for a message. */
export const hostClassNames = (hostClasses: ReadonlyArray<HostClass>): string =>
  hostClasses
    .map((hostClass) => hostClass.name)
    .sort()
    .join(", ")

/**
 * The problem of a host class that is not configured, or null. Without any configured host class there is no problem to
 * report.
 */
export const hostClassProblem = (serving: ServingRequest, hostClasses: ReadonlyArray<HostClass>): ServingProblem | null => {
  const names = classOrder(serving)
  if (names === null || hostClasses.length === 0) return null
  const unknown = names.find((name) => !hostClasses.some((hostClass) => hostClass.name === name))
  if (unknown === undefined) return null
  const message =
    unknown === "any"
      ? '"any" cannot be combined with names of host classes, because it means every host class.'
      : `There is no host class ${unknown}; choose ${isClassChoice(serving) ? "from" : "one of"} ${hostClassNames(hostClasses)}.`
  return { kind: "unknown", param: "serving.host_class", message }
}
