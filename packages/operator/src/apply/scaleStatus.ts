import type { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { isServed } from "../observation/isServed.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { deploymentLabel, roleLabel } from "../resources/objectNames.ts"
import { earlierServing, servingStatus, showsModel } from "./modelVerdicts.ts"

/** Numbers of engine pods. `earlier`: pods of the serving revision while another run is tried. */
export interface EngineCounts {
  readonly own: number
  readonly earlier: number
}

export const noEngines: EngineCounts = { own: 0, earlier: 0 }

type ScaleStatus = Pick<ModelDeploymentStatus, "desiredReplicas" | "readyReplicas" | "replicas" | "selector">

const selectorOf = (run: DeploymentId): string => `${deploymentLabel}=${run},${roleLabel}=engine`

/** How many engines the model should have, has and serves with, as the scale subresource reads it. */
export const scaleStatus = (run: Run, { earlier, own }: EngineCounts): ScaleStatus => {
  const isEarlier = !isServed({ run }) && earlierServing(run) !== null
  return {
    ...(isServed({ run }) || showsModel(run) ? { desiredReplicas: run.replicas ?? 1 } : {}),
    replicas: isEarlier ? earlier : own,
    readyReplicas: servingStatus(run)?.replicas ?? 0,
    selector: selectorOf(isEarlier && run.predecessor !== null ? run.predecessor.run : run.engineRun)
  }
}
