export { type Credentials, KubeConnectionError } from "./access.ts"
export { type DeleteOptions, KubeClient, layerKubeClient } from "./KubeClient.ts"
export { KubeConnection, type KubeConnectionConfig } from "./KubeConnection.ts"
export { KubeError } from "./KubeError.ts"
export { defaultSettings, type KubeSettings } from "./KubeTransport.ts"
export { LeaseElection, type LeaseElectionOptions } from "./LeaseElection.ts"
export { meetsRequirement } from "./meetsRequirement.ts"
export { kubeMetrics } from "./metrics.ts"
export { quantity } from "./quantity.ts"
export { Reflector, type ReflectorOptions } from "./Reflector.ts"
export {
  defineResource,
  fromKey,
  type KubeObject,
  keyOf,
  type ObjectMeta,
  ObjectMetaSchema,
  type OwnerReference,
  objectSchema,
  open,
  type Resource,
  type Selection,
  toKey
} from "./Resource.ts"
export { CustomResourceDefinition, Event, Job, Lease, Namespace, Node, Pod, PodDisruptionBudget, Secret } from "./resources.ts"
export { WatchEvent } from "./WatchEvent.ts"
export { WorkQueue, type WorkQueueOptions } from "./WorkQueue.ts"
