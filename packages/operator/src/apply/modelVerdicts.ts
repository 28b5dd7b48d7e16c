import { isFinished } from "@seatrial/domain"
import type { Predecessor, Run } from "@seatrial/store"
import { isServed } from "../observation/isServed.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { camelCase, capitalized } from "./reasons.ts"

/** Whether a condition holds, and why. */
export interface Verdict {
  readonly holds: boolean
  readonly reason: string
  readonly message: string
}

type ServingStatus = NonNullable<ModelDeploymentStatus["serving"]>

/** Whether the object represents its model, and not one run. */
export const showsModel = ({ applied }: Run): boolean => applied !== null && applied.current !== null

/** The serving revision if the object shows another run of its model; null if it does not, or if none serves. */
const shownPredecessor = (run: Run): Predecessor | null => (showsModel(run) && !run.modelDeleted && !run.modelDisabled ? run.predecessor : null)

/** Engines of earlier revisions that still answer requests during a move. */
export const earlierEngines = (run: Run): number => (run.earlier ?? 0) + (shownPredecessor(run)?.earlier ?? 0)

/** The revision that serves although the object shows another run; null if there is none. */
export const earlierServing = (run: Run): ServingStatus | null => {
  const predecessor = shownPredecessor(run)
  if (predecessor === null) return null
  return { deploymentId: predecessor.run, revision: predecessor.commit.slice(0, 12), replicas: predecessor.replicas + earlierEngines(run) }
}

/** The engines of the run's revision that a gateway has reached. */
export const reachedEngines = ({ endpoints }: Run): number => endpoints.filter(({ reachable }) => reachable).length

/** The revision that has the model's traffic, and the engines that answer. Null if none has it. */
export const servingStatus = (run: Run): ServingStatus | null => {
  if (!isServed({ run })) return earlierServing(run)
  return { deploymentId: run.id, revision: run.revision?.facts.commit.slice(0, 12) ?? "", replicas: reachedEngines(run) + earlierEngines(run) }
}

/** The newest run of the object. */
export const latestStatus = ({ id, phase, revision }: Run): NonNullable<ModelDeploymentStatus["latest"]> => ({
  deploymentId: id,
  phase,
  ...(revision === null ? {} : { revision: revision.facts.commit.slice(0, 12) })
})

/** Whether the serving revision answers, if the object shows another run. */
const predecessorVerdict = ({ commit, replicas, run }: Predecessor): Verdict => {
  const revision = commit.slice(0, 12)
  return replicas > 0
    ? { holds: true, reason: "Serving", message: `Revision ${revision} of deployment ${run} serves.` }
    : { holds: false, reason: "EngineNotReady", message: `The engine of revision ${revision}, deployment ${run}, has no traffic.` }
}

/** Whether the model answers requests, with this or an earlier revision. `ready`: the verdict about the shown run. */
export const availableVerdict = (run: Run, ready: Verdict): Verdict => {
  const predecessor = shownPredecessor(run)
  const verdict = predecessor === null ? ready : predecessorVerdict(predecessor)
  const earlier = earlierEngines(run)
  if (verdict.holds || earlier === 0) return verdict
  return {
    holds: true,
    reason: "Serving",
    message: `${earlier} ${earlier === 1 ? "engine" : "engines"} of the earlier revision still ${earlier === 1 ? "serves" : "serve"}.`
  }
}

/** Reason of `Progressing` if the model has stopped halfway to a new revision. */
export const moveStopped = "MoveStopped"

/**
 * `Progressing`: whether the newest run proceeds or has succeeded, as in a Deployment of Kubernetes. `Stalled`: whether
 * nothing happens until the specification changes, as kstatus defines it. `refused`: the condition `Accepted` of a
 * specification that has no run. `stopped`: why the model has stopped halfway to the revision of the run; null if it has
 * not.
 */
export const progressVerdicts = (
  { failure, phase }: Run,
  message: string,
  refused: Pick<Verdict, "message" | "reason"> | undefined,
  stopped: string | null
) => {
  const isStalled = refused !== undefined || (isFinished(phase) && phase !== "activated")
  const done = stopped === null ? { reason: "Complete", message: "The newest run succeeded." } : { reason: moveStopped, message: stopped }
  const verdict = refused ?? (phase === "activated" ? done : { reason: failure === null ? capitalized(phase) : camelCase(failure.code), message })
  return [
    { type: "Progressing", verdict: { ...verdict, holds: !isStalled && stopped === null } },
    { type: "Stalled", verdict: { ...verdict, holds: isStalled } }
  ]
}
