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
    const message = `max_context must be at least ${leastContext}: the checks of a deployment's trial need that many tokens.`
    return { kind: "invalid", param: "serving.max_context", message }
  }
  if (yarn !== undefined && yarn.factor > maxYarnFactor) {
    return { kind: "invalid", param: "serving.yarn.factor", message: `yarn.factor must be at most ${maxYarnFactor}.` }
  }
  return null
}

/** Suggests the runtimes of host classes that accept what the chosen ones do not. */
const orRuntime = (alternatives: ReadonlyArray<EngineContract>): string =>
  alternatives.length === 0 ? "" : ` Request the runtime ${[...new Set(alternatives.map((engine) => engine.runtime))].sort().join(" or ")}, which accepts it.`

/**
 * The first problem of serving settings that is apparent from the configured host classes and engines, or null. A flag
 * or cache type is wrong if every engine that the settings may select refuses it.
 */
export const servingProblem = (
  serving: ServingRequest,
  hostClasses: ReadonlyArray<HostClass>,
  engines: ReadonlyArray<EngineContract>
): ServingProblem | null => {
  const { engine_flags: flags, kv_cache_dtype: dtype, runtime } = serving
  const range = rangeProblem(serving)
  if (range !== null) return range
  const names = classOrder(serving)
  const classes = names === null ? hostClasses : hostClasses.filter((hostClass) => names.includes(hostClass.name))
  const runtimesOf = (hostClass: HostClass): ReadonlyArray<Runtime> => hostClass.runtimes.map((offered) => offered.runtime)
  if (runtime !== undefined && classes.length > 0 && !classes.some((hostClass) => runtimesOf(hostClass).includes(runtime))) {
    const offeredRuntimes = [...new Set(classes.flatMap(runtimesOf))].sort().join(", ")
    return {
      kind: "unknown",
      param: "serving.runtime",
      message: `${names === null ? "No host class has" : names.length === 1 ? `${names[0]} does not have` : `None of ${classesInWords(names)} has`} the runtime ${runtime}. Available: ${offeredRuntimes}.`
    }
  }
  const chosen = new Set(classes.map((hostClass) => runtime ?? hostClass.runtimes[0].runtime))
  const offered = new Set(classes.flatMap(runtimesOf))
  const candidates = engines.filter((engine) => (runtime === undefined ? chosen.size === 0 || chosen.has(engine.runtime) : engine.runtime === runtime))
  const alternatives = engines.filter((engine) => runtime === undefined && offered.has(engine.runtime) && !candidates.includes(engine))
  if (dtype !== undefined && candidates.length > 0 && !candidates.some((engine) => engine.kvCacheDtypes.has(dtype))) {
    const taken = [...new Set(candidates.flatMap((engine) => [...engine.kvCacheDtypes]))].sort().join(", ")
    const engine = [...new Set(candidates.map((candidate) => candidate.runtime))].sort().join(" and ")
    const more = orRuntime(alternatives.filter((other) => other.kvCacheDtypes.has(dtype)))
    return { kind: "unknown", param: "serving.kv_cache_dtype", message: `${engine} does not take the KV cache type ${dtype}; it takes ${taken}.${more}` }
  }
  if (flags === undefined) return null
  const issues = candidates.map((engine) => engine.flagIssue(flags))
  const issue = issues[0]
  if (issue === undefined || issue === null || issues.includes(null)) return null
  const more = orRuntime(alternatives.filter((other) => other.flagIssue(flags) === null))
  return { kind: "invalid", param: `serving.engine_flags.${issue.flag}`, message: `${issue.message}${more}` }
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
  const message = `There is no host class ${unknown}; choose ${isClassChoice(serving) ? "from" : "one of"} ${hostClassNames(hostClasses)}.`
  return { kind: "unknown", param: "serving.host_class", message }
}
