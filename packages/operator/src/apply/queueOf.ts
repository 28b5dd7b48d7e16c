import type { Observation } from "../decide/Observation.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"

/** What a run in `waiting` or `queued` waits for; undefined in any other phase. `message`: the decision's words for it. */
export const queueOf = ({ ahead, podClass, run }: Pick<Observation, "ahead" | "podClass" | "run">, message: string): ModelDeploymentStatus["queue"] => {
  if (run.phase === "waiting") return { waitsFor: run.olderRun === null ? "OrganizationLimit" : "OlderRun", message }
  if (run.phase !== "queued") return undefined
  return podClass === null ? { waitsFor: "HostClass", message } : { waitsFor: "Capacity", place: ahead + 1, message }
}
