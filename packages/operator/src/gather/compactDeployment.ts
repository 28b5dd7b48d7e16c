import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"

/**
 * Keeps the status of a deployment as JSON text, which takes a fifth of the memory of objects. It is parsed at each
 * access. The specification is a text already.
 */
export const compactDeployment = (deployment: WatchedDeployment): WatchedDeployment => {
  const { status, ...rest } = deployment
  if (status === undefined) return deployment
  const statusText = JSON.stringify(status)
  return {
    ...rest,
    get status(): ModelDeploymentStatus {
      return JSON.parse(statusText)
    }
  }
}
