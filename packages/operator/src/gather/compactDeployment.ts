import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { OversizedSpec, type WatchedDeployment } from "../resources/WatchedDeployment.ts"

/**
 * Keeps specification and status of a deployment as JSON text, which takes a fifth of the memory of objects, and less than a tenth for many small values.
 * They are parsed at each access.
 */
export const compactDeployment = (deployment: WatchedDeployment): WatchedDeployment => {
  const { spec, status, ...rest } = deployment
  const specText = spec === undefined || spec instanceof OversizedSpec ? null : JSON.stringify(spec)
  const readSpec = () => (specText === null ? spec : JSON.parse(specText))
  if (status === undefined) {
    return {
      ...rest,
      get spec(): unknown {
        return readSpec()
      }
    }
  }
  const statusText = JSON.stringify(status)
  return {
    ...rest,
    get spec(): unknown {
      return readSpec()
    },
    get status(): ModelDeploymentStatus {
      return JSON.parse(statusText)
    }
  }
}
