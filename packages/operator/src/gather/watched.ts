import { defineResource, Job, Pod, PodDisruptionBudget } from "@seatrial/kube"
import { Schema } from "effect"
import {
  deploymentLabel,
  gpuPriceAnnotation,
  hostClassLabel,
  madeFromAnnotation,
  organizationLabel,
  roleLabel,
  weightsInUseAnnotation
} from "../resources/objectNames.ts"

// The kinds of which there are as many objects as deployments, as far as anybody here asks: what these schemas do not name is neither looked at nor kept. A start reads all of
// them, and most of what the cluster says of each concerns others.

const { Array: List, Struct, optionalKey: optional, String: Text } = Schema
const TextOrNull = Schema.NullOr(Text)
const Quantities = Schema.Record(Text, Schema.Union([Text, Schema.Number]))

const named = {
  name: Text,
  namespace: optional(Text),
  uid: optional(Text),
  resourceVersion: optional(Text),
  creationTimestamp: optional(Text),
  deletionTimestamp: optional(Text)
}
const Labels = Struct({
  [organizationLabel]: optional(Text),
  [deploymentLabel]: optional(Text),
  [hostClassLabel]: optional(Text),
  [roleLabel]: optional(Text)
})
const Annotations = Struct({
  [madeFromAnnotation]: optional(Text),
  [gpuPriceAnnotation]: optional(Text),
  [weightsInUseAnnotation]: optional(Text)
})
const Metadata = Struct({ ...named, labels: optional(Labels), annotations: optional(Annotations) })

const Condition = Struct({
  type: Text,
  status: Text,
  reason: optional(Text),
  message: optional(Text),
  lastTransitionTime: optional(TextOrNull)
})

const Terminated = Struct({
  exitCode: Schema.Number,
  reason: optional(Text),
  message: optional(Text),
  startedAt: optional(TextOrNull),
  finishedAt: optional(TextOrNull)
})
const ContainerState = Struct({
  waiting: optional(Struct({ reason: optional(Text), message: optional(Text) })),
  running: optional(Struct({ startedAt: optional(TextOrNull) })),
  terminated: optional(Terminated)
})
const AllocatedResource = Struct({
  name: Text,
  resources: optional(List(Struct({ resourceID: Text, health: optional(Text), message: optional(TextOrNull) })))
})
const ContainerStatus = Struct({
  name: Text,
  ready: Schema.Boolean,
  restartCount: Schema.Number,
  started: optional(Schema.NullOr(Schema.Boolean)),
  imageID: optional(Text),
  allocatedResourcesStatus: optional(Schema.NullOr(List(AllocatedResource))),
  state: optional(ContainerState),
  lastState: optional(ContainerState)
})

/** What its containers are told is for the kubelet, but for those that copy weights: these say what must stay on the node. */
const PodSpec = Struct({
  nodeName: optional(Text),
  schedulingGates: optional(List(Struct({ name: Text }))),
  initContainers: optional(List(Struct({ name: Text, args: optional(List(Text)) }))),
  containers: List(
    Struct({
      name: Text,
      image: optional(Text),
      ports: optional(List(Struct({ containerPort: Schema.Number }))),
      resources: optional(Struct({ requests: optional(Quantities), limits: optional(Quantities) }))
    })
  ),
  volumes: optional(List(Struct({ name: Text, persistentVolumeClaim: optional(Struct({ claimName: Text })) })))
})

/** Where a pod is, what it holds and mounts, and how it is. */
export const WatchedPod = defineResource({
  ...Pod,
  schema: Struct({
    metadata: Metadata,
    spec: optional(PodSpec),
    status: optional(
      Struct({
        phase: optional(Text),
        reason: optional(Text),
        message: optional(Text),
        podIP: optional(Text),
        conditions: optional(List(Condition)),
        initContainerStatuses: optional(List(ContainerStatus)),
        containerStatuses: optional(List(ContainerStatus))
      })
    )
  })
})

export type WatchedPod = typeof WatchedPod.schema.Type

/** How a Job goes. */
export const WatchedJob = defineResource({
  ...Job,
  schema: Struct({ metadata: Metadata, status: optional(Struct({ conditions: optional(List(Condition)) })) })
})

export type WatchedJob = typeof WatchedJob.schema.Type

/** That a disruption budget is there. */
export const WatchedBudget = defineResource({ ...PodDisruptionBudget, schema: Struct({ metadata: Struct(named) }) })
export type WatchedBudget = typeof WatchedBudget.schema.Type
