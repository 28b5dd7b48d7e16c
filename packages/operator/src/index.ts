export { customResourceDefinitions } from "./resources/customResourceDefinitions.ts"
export { HostClassResource, HostClassSpec } from "./resources/HostClassResource.ts"
export { ModelDeployment, ModelDeploymentSpec, ModelDeploymentStatus } from "./resources/ModelDeployment.ts"
export { deploymentLabel, enginePodName, fetchJobName, hubSecretName, objectName, organizationLabel } from "./resources/objectNames.ts"
