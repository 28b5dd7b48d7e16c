import type { Event } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Result } from "effect"
import { refusedEvent } from "../applied/refuse.ts"
import { brokenSentence } from "../resources/Rule.ts"
import { scalingRules } from "../resources/rules.ts"
import { readSpec, type WatchedDeployment } from "../resources/WatchedDeployment.ts"

/**
 * Why the number of engines on the object of an API run has no effect; null if the object sets none. Only a cluster
 * without CEL lets someone add it. The operator's own object has the generation 1, and is not decoded.
 */
export const editProblem = ({ applied }: Run, resource: WatchedDeployment): string | null => {
  const { generation = 1, name } = resource.metadata
  if (applied !== null || generation === 1) return null
  const spec = readSpec(resource)
  return Result.isFailure(spec) ? null : brokenSentence(scalingRules, { metadata: { name }, spec: spec.success })
}

/** The event of that problem; none if the status shows it already. `at`: Unix milliseconds. */
export const editEvents = (resource: WatchedDeployment, problem: string | null, at: number): ReadonlyArray<Event> =>
  problem === null || resource.status?.conditions?.some(({ message }) => message === problem) === true ? [] : [refusedEvent(resource, "Invalid", problem, at)]
