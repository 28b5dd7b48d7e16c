import { Schema } from "effect"
import { defineResource, objectSchema, open } from "./Resource.ts"

const optional = Schema.optionalKey
const Labels = Schema.Record(Schema.String, Schema.String)

const Condition = open({
  type: Schema.String,
  status: Schema.String,
  reason: optional(Schema.String),
  message: optional(Schema.String),
  lastTransitionTime: optional(Schema.NullOr(Schema.String))
})

const Terminated = open({
  exitCode: Schema.Number,
  signal: optional(Schema.Number),
  reason: optional(Schema.String),
  message: optional(Schema.String),
  startedAt: optional(Schema.NullOr(Schema.String)),
  finishedAt: optional(Schema.NullOr(Schema.String))
})
const ContainerState = open({
  waiting: optional(open({ reason: optional(Schema.String), message: optional(Schema.String) })),
  running: optional(open({ startedAt: optional(Schema.NullOr(Schema.String)) })),
  terminated: optional(Terminated)
})
/** The health of devices that a device plugin has allocated to a container. */
const AllocatedResource = open({
  name: Schema.String,
  resources: optional(Schema.Array(open({ resourceID: Schema.String, health: optional(Schema.String), message: optional(Schema.NullOr(Schema.String)) })))
})
const ContainerStatus = open({
  name: Schema.String,
  ready: Schema.Boolean,
  restartCount: Schema.Number,
  started: optional(Schema.NullOr(Schema.Boolean)),
  image: optional(Schema.String),
  imageID: optional(Schema.String),
  containerID: optional(Schema.String),
  allocatedResourcesStatus: optional(Schema.NullOr(Schema.Array(AllocatedResource))),
  state: optional(ContainerState),
  lastState: optional(ContainerState)
})
const Container = open({
  name: Schema.String,
  image: optional(Schema.String),
  command: optional(Schema.Array(Schema.String)),
  args: optional(Schema.Array(Schema.String)),
  workingDir: optional(Schema.String),
  restartPolicy: optional(Schema.String),
  env: optional(Schema.Array(open({ name: Schema.String, value: optional(Schema.String), valueFrom: optional(Schema.Unknown) }))),
  ports: optional(Schema.Array(open({ containerPort: Schema.Number, name: optional(Schema.String), protocol: optional(Schema.String) }))),
  resources: optional(open({ requests: optional(Quantities()), limits: optional(Quantities()) })),
  volumeMounts: optional(
    Schema.Array(open({ name: Schema.String, mountPath: Schema.String, readOnly: optional(Schema.Boolean), subPath: optional(Schema.String) }))
  )
})
/** The server writes quantities as strings. Manifests often have numbers. */
function Quantities() {
  return Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Number]))
}
const PodSpec = open({
  nodeName: optional(Schema.String),
  nodeSelector: optional(Labels),
  restartPolicy: optional(Schema.String),
  terminationGracePeriodSeconds: optional(Schema.NullOr(Schema.Number)),
  serviceAccountName: optional(Schema.String),
  schedulerName: optional(Schema.String),
  schedulingGates: optional(Schema.Array(open({ name: Schema.String }))),
  initContainers: optional(Schema.Array(Container)),
  containers: Schema.Array(Container),
  volumes: optional(Schema.Array(open({ name: Schema.String, persistentVolumeClaim: optional(open({ claimName: Schema.String })) })))
})

/** A pod (`v1`). */
export const Pod = defineResource({
  group: "",
  version: "v1",
  plural: "pods",
  kind: "Pod",
  namespaced: true,
  schema: objectSchema({
    spec: optional(PodSpec),
    status: optional(
      open({
        phase: optional(Schema.String),
        reason: optional(Schema.String),
        message: optional(Schema.String),
        podIP: optional(Schema.String),
        hostIP: optional(Schema.String),
        startTime: optional(Schema.String),
        conditions: optional(Schema.Array(Condition)),
        initContainerStatuses: optional(Schema.Array(ContainerStatus)),
        containerStatuses: optional(Schema.Array(ContainerStatus))
      })
    )
  })
})
export type Pod = (typeof Pod.schema)["Type"]

/** A job (`batch/v1`). */
export const Job = defineResource({
  group: "batch",
  version: "v1",
  plural: "jobs",
  kind: "Job",
  namespaced: true,
  schema: objectSchema({
    spec: optional(
      open({
        backoffLimit: optional(Schema.NullOr(Schema.Number)),
        activeDeadlineSeconds: optional(Schema.NullOr(Schema.Number)),
        ttlSecondsAfterFinished: optional(Schema.NullOr(Schema.Number)),
        parallelism: optional(Schema.NullOr(Schema.Number)),
        completions: optional(Schema.NullOr(Schema.Number)),
        suspend: optional(Schema.NullOr(Schema.Boolean)),
        template: open({ metadata: optional(open({ labels: optional(Labels), annotations: optional(Labels) })), spec: optional(PodSpec) })
      })
    ),
    status: optional(
      open({
        active: optional(Schema.Number),
        succeeded: optional(Schema.Number),
        failed: optional(Schema.Number),
        startTime: optional(Schema.String),
        completionTime: optional(Schema.String),
        conditions: optional(Schema.Array(Condition))
      })
    )
  })
})
export type Job = (typeof Job.schema)["Type"]

/** A disruption budget (`policy/v1`). */
export const PodDisruptionBudget = defineResource({
  group: "policy",
  version: "v1",
  plural: "poddisruptionbudgets",
  kind: "PodDisruptionBudget",
  namespaced: true,
  schema: objectSchema({ status: optional(open({ disruptionsAllowed: optional(Schema.Number) })) })
})
export type PodDisruptionBudget = (typeof PodDisruptionBudget.schema)["Type"]

/** A node (`v1`), cluster-scoped. */
export const Node = defineResource({
  group: "",
  version: "v1",
  plural: "nodes",
  kind: "Node",
  namespaced: false,
  schema: objectSchema({
    spec: optional(
      open({
        unschedulable: optional(Schema.Boolean),
        taints: optional(Schema.Array(open({ key: Schema.String, value: optional(Schema.String), effect: Schema.String })))
      })
    ),
    status: optional(
      open({
        capacity: optional(Quantities()),
        allocatable: optional(Quantities()),
        conditions: optional(Schema.Array(Condition)),
        addresses: optional(Schema.Array(open({ type: Schema.String, address: Schema.String })))
      })
    )
  })
})
export type Node = (typeof Node.schema)["Type"]

/** A lease (`coordination.k8s.io/v1`). Its times are RFC 3339 with microseconds. */
export const Lease = defineResource({
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  kind: "Lease",
  namespaced: true,
  schema: objectSchema({
    spec: optional(
      open({
        holderIdentity: optional(Schema.NullOr(Schema.String)),
        leaseDurationSeconds: optional(Schema.NullOr(Schema.Number)),
        acquireTime: optional(Schema.NullOr(Schema.String)),
        renewTime: optional(Schema.NullOr(Schema.String)),
        leaseTransitions: optional(Schema.NullOr(Schema.Number))
      })
    )
  })
})
export type Lease = (typeof Lease.schema)["Type"]

/** A secret (`v1`); `data` is base64. */
export const Secret = defineResource({
  group: "",
  version: "v1",
  plural: "secrets",
  kind: "Secret",
  namespaced: true,
  schema: objectSchema({
    type: optional(Schema.String),
    immutable: optional(Schema.NullOr(Schema.Boolean)),
    data: optional(Schema.Record(Schema.String, Schema.String)),
    stringData: optional(Schema.Record(Schema.String, Schema.String))
  })
})
export type Secret = (typeof Secret.schema)["Type"]

/** An event (`v1`) about another object. */
export const Event = defineResource({
  group: "events.k8s.io",
  version: "v1",
  plural: "events",
  kind: "Event",
  namespaced: true,
  schema: objectSchema({
    regarding: open({
      apiVersion: optional(Schema.String),
      kind: optional(Schema.String),
      namespace: optional(Schema.String),
      name: optional(Schema.String),
      uid: optional(Schema.String)
    }),
    type: optional(Schema.String),
    reason: optional(Schema.String),
    action: optional(Schema.String),
    note: optional(Schema.String),
    eventTime: optional(Schema.NullOr(Schema.String)),
    series: optional(open({ count: Schema.Number, lastObservedTime: Schema.String })),
    reportingController: optional(Schema.String),
    reportingInstance: optional(Schema.String)
  })
})
export type Event = (typeof Event.schema)["Type"]

/** A namespace (`v1`), cluster-scoped. */
export const Namespace = defineResource({
  group: "",
  version: "v1",
  plural: "namespaces",
  kind: "Namespace",
  namespaced: false,
  schema: objectSchema({ status: optional(open({ phase: optional(Schema.String) })) })
})
export type Namespace = (typeof Namespace.schema)["Type"]

/** The definition of a custom resource (`apiextensions.k8s.io/v1`), cluster-scoped. */
export const CustomResourceDefinition = defineResource({
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
  schema: objectSchema({
    spec: open({
      group: Schema.String,
      scope: Schema.String,
      names: open({
        plural: Schema.String,
        kind: Schema.String,
        singular: optional(Schema.String),
        listKind: optional(Schema.String),
        shortNames: optional(Schema.Array(Schema.String)),
        categories: optional(Schema.Array(Schema.String))
      }),
      versions: Schema.Array(
        open({
          name: Schema.String,
          served: Schema.Boolean,
          storage: Schema.Boolean,
          schema: optional(Schema.Unknown),
          subresources: optional(Schema.Unknown),
          additionalPrinterColumns: optional(Schema.Array(Schema.Unknown))
        })
      )
    }),
    status: optional(open({ conditions: optional(Schema.Array(Condition)) }))
  })
})
export type CustomResourceDefinition = (typeof CustomResourceDefinition.schema)["Type"]
