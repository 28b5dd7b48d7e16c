import { attempt, bestOf, type EvaluationInput, everyCandidate, servesModel, settingsOf, takesSettings } from "./candidates.ts"
import type { EngineContract } from "./engineContract.ts"
import type { HostClass } from "./hostClass.ts"
import type { RefusalCode } from "./repository.ts"
import { contextRefusal } from "./requestRefusals.ts"
import type { ServingRequest, ServingSettings } from "./serving.ts"

/** The facts that are available before candidates are compared. */
export interface ServingQuestion {
  readonly evaluation: EvaluationInput
  /** All host classes, cheapest first. */
  readonly hostClasses: ReadonlyArray<HostClass>
  readonly engines: ReadonlyArray<EngineContract>
  /** The names of the classes that the request allows, in order of preference; null if it allows every class. */
  readonly order: ReadonlyArray<string> | null
  /** The host classes that the request allows, in the order in which they are tried. */
  readonly requested: ReadonlyArray<HostClass>
}

/** Why the model is not served, what to do about it, and settings that are served, if any. */
export interface ServingRefusal {
  readonly code: RefusalCode
  readonly message: string
  readonly remedy: string
  readonly serving: ServingSettings | null
}

/** A host class and runtime that serve the model: a description and the settings. */
interface Alternative {
  readonly where: string
  readonly serving: ServingSettings
}

/** Any host class and runtime that serve the model: a description and the settings; null if there is none. */
export const servedElsewhere = ({ engines, evaluation: input, hostClasses }: ServingQuestion): Alternative | null => {
  // Flags apply only to the runtime that they were written for.
  const { engine_flags: _, host_class: __, runtime: ___, ...open } = input.request
  const { max_context: ____, yarn: _____, ...plain } = open
  const candidates = everyCandidate(hostClasses, engines).filter((candidate) => servesModel(input.facts, candidate))
  const served = (request: ServingRequest): ServingSettings | null => {
    const other = { ...input, request }
    const able = candidates.filter((candidate) => takesSettings(input.facts, request, candidate) && contextRefusal(other, [candidate]) === null)
    const best = bestOf(able.map((candidate) => attempt(other, candidate)))
    return best === undefined ? null : settingsOf(other, best, best.result.fit.max_context)
  }
  const same = served(open)
  const serving = same ?? served(plain)
  if (serving === null) return null
  const context = same === null ? ` with a context of ${serving.max_context} tokens${open.yarn === undefined ? "" : " and without yarn"}` : ""
  return { where: `${serving.runtime} on the host class ${serving.host_class}${context}`, serving }
}
