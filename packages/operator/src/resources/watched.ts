import { defineResource, Job, Pod, PodDisruptionBudget } from "@seatrial/kube"
import { Schema } from "effect"
import {
  deploymentLabel,
  gpuPriceAnnotation,
  hostClassLabel,
  madeFromAnnotation,
  organizationLabel,
  referenceLabel,
  roleLabel,
  weightsInUseAnnotation
} from "./objectNames.ts"

// Schemas of the kinds with as many objects as there are deployments. They name only the fields that the operator uses;
// all other fields are neither parsed nor kept. A start of the operator reads all objects.

const { Array: List, Struct, optionalKey: optional, String: Text } = Schema
const TextOrNull = Schema.NullOr(Text)
const Quantities = Schema.Record(Text, Schema.Union([Text, Schema.Number]))

const metadataFields = {
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
  [roleLabel]: optional(Text),
  [referenceLabel]: optional(Text)
})
const Annotations = Struct({
  [madeFromAnnotation]: optional(Text),
  [gpuPriceAnnotation]: optional(Text),
  [weightsInUseAnnotation]: optional(Text)
})
const Metadata = Struct({ ...metadataFields, labels: optional(Labels), annotations: optional(Annotations) })

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

/**
 * Container arguments and variables are only kept for init containers: the arguments say which copies must stay on the
 * node, and the variables whether a container needs other objects.
 */
const PodSpec = Struct({
  nodeName: optional(Text),
  schedulingGates: optional(List(Struct({ name: Text }))),
  initContainers: optional(
    List(
      Struct({
        name: Text,
        args: optional(List(Text)),
        env: optional(List(Struct({ valueFrom: optional(Schema.Unknown) }))),
        envFrom: optional(List(Schema.Unknown)),
        restartPolicy: optional(Text)
      })
    )
  ),
  containers: List(
    Struct({
      name: Text,
      image: optional(Text),
      ports: optional(List(Struct({ name: optional(Text), containerPort: Schema.Number }))),
      resources: optional(Struct({ requests: optional(Quantities), limits: optional(Quantities) }))
    })
  ),
  volumes: optional(List(Struct({ name: Text, persistentVolumeClaim: optional(Struct({ claimName: Text })) })))
})

/** A pod: its place, its resources, its mounts and its state. */
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

/** A Job: its state. */
export const WatchedJob = defineResource({
  ...Job,
  schema: Struct({ metadata: Metadata, status: optional(Struct({ conditions: optional(List(Condition)) })) })
})

export type WatchedJob = typeof WatchedJob.schema.Type

const BudgetSpec = Struct({
  minAvailable: optional(Schema.Union([Text, Schema.Number])),
  maxUnavailable: optional(Schema.Union([Text, Schema.Number])),
  unhealthyPodEvictionPolicy: optional(Text),
  selector: optional(
    Struct({
      matchLabels: optional(Schema.Record(Text, Text)),
      matchExpressions: optional(List(Struct({ key: Text, operator: Text, values: optional(List(Text)) })))
    })
  )
})

/** A disruption budget: its specification. */
export const WatchedBudget = defineResource({
  ...PodDisruptionBudget,
  schema: Struct({ metadata: Struct({ ...metadataFields, generation: optional(Schema.Number) }), spec: optional(BudgetSpec) })
})
export type WatchedBudget = typeof WatchedBudget.schema.Type
