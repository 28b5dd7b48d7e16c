import { optionalNullable } from "@seatrial/domain"
import { defineResource, objectSchema } from "@seatrial/kube"
import { Schema } from "effect"

const optional = Schema.optionalKey
const Labels = Schema.Record(Schema.String, Schema.String)
const Port = Schema.Union([Schema.Number, Schema.String])
const Quantities = Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Number]))
const Exec = Schema.Struct({ command: optional(Schema.Array(Schema.String)) })

const Probe = Schema.Struct({
  httpGet: optional(
    Schema.Struct({
      path: optional(Schema.String),
      port: Port,
      host: optional(Schema.String),
      scheme: optional(Schema.String),
      httpHeaders: optional(Schema.Array(Schema.Struct({ name: Schema.String, value: Schema.String })))
    })
  ),
  tcpSocket: optional(Schema.Struct({ port: Port, host: optional(Schema.String) })),
  exec: optional(Exec),
  initialDelaySeconds: optional(Schema.Number),
  periodSeconds: optional(Schema.Number),
  timeoutSeconds: optional(Schema.Number),
  successThreshold: optional(Schema.Number),
  failureThreshold: optional(Schema.Number)
})
export type Probe = typeof Probe.Type

const KeySelector = Schema.Struct({ name: Schema.String, key: Schema.String, optional: optional(Schema.Boolean) })
const SourceReference = Schema.Struct({ name: Schema.String, optional: optional(Schema.Boolean) })
const Variable = Schema.Struct({
  name: Schema.String,
  value: optional(Schema.String),
  valueFrom: optional(
    Schema.Struct({
      secretKeyRef: optional(KeySelector),
      configMapKeyRef: optional(KeySelector),
      fieldRef: optional(Schema.Struct({ fieldPath: Schema.String }))
    })
  )
})

const Container = Schema.Struct({
  name: Schema.String,
  image: optional(Schema.String),
  command: optional(Schema.Array(Schema.String)),
  args: optional(Schema.Array(Schema.String)),
  workingDir: optional(Schema.String),
  env: optional(Schema.Array(Variable)),
  envFrom: optional(
    Schema.Array(Schema.Struct({ prefix: optional(Schema.String), secretRef: optional(SourceReference), configMapRef: optional(SourceReference) }))
  ),
  ports: optional(Schema.Array(Schema.Struct({ containerPort: Schema.Number, name: optional(Schema.String) }))),
  resources: optional(Schema.Struct({ requests: optional(Quantities), limits: optional(Quantities) })),
  volumeMounts: optional(Schema.Array(Schema.Struct({ name: Schema.String, mountPath: Schema.String, subPath: optional(Schema.String) }))),
  startupProbe: optional(Probe),
  readinessProbe: optional(Probe),
  livenessProbe: optional(Probe),
  lifecycle: optional(
    Schema.Struct({ preStop: optional(Schema.Struct({ exec: optional(Exec), sleep: optional(Schema.Struct({ seconds: Schema.Number })) })) })
  ),
  terminationMessagePath: optional(Schema.String),
  terminationMessagePolicy: optional(Schema.String)
})
export type Container = typeof Container.Type

const Items = optional(Schema.Array(Schema.Struct({ key: Schema.String, path: Schema.String })))
const ProjectedSource = Schema.Struct({
  serviceAccountToken: optional(Schema.Struct({ path: Schema.String, audience: optional(Schema.String), expirationSeconds: optionalNullable(Schema.Number) })),
  configMap: optional(Schema.Struct({ name: Schema.String, items: Items, optional: optional(Schema.Boolean) })),
  secret: optional(Schema.Struct({ name: Schema.String, items: Items, optional: optional(Schema.Boolean) })),
  downwardAPI: optional(
    Schema.Struct({ items: optional(Schema.Array(Schema.Struct({ path: Schema.String, fieldRef: optional(Schema.Struct({ fieldPath: Schema.String })) }))) })
  )
})
export type ProjectedSource = typeof ProjectedSource.Type

const Volume = Schema.Struct({
  name: Schema.String,
  persistentVolumeClaim: optional(Schema.Struct({ claimName: Schema.String, readOnly: optional(Schema.Boolean) })),
  hostPath: optional(Schema.Struct({ path: Schema.String })),
  emptyDir: optional(Schema.Unknown),
  secret: optional(Schema.Struct({ secretName: Schema.String, items: Items, optional: optional(Schema.Boolean) })),
  configMap: optional(Schema.Struct({ name: Schema.String, items: Items, optional: optional(Schema.Boolean) })),
  projected: optional(Schema.Struct({ sources: optionalNullable(Schema.Array(ProjectedSource)) }))
})
export type Volume = typeof Volume.Type

const Terminated = Schema.Struct({
  exitCode: Schema.Number,
  signal: optional(Schema.Number),
  reason: optional(Schema.String),
  message: optional(Schema.String),
  startedAt: optionalNullable(Schema.String),
  finishedAt: optionalNullable(Schema.String)
})
export type Terminated = typeof Terminated.Type

const ContainerState = Schema.Struct({
  waiting: optional(Schema.Struct({ reason: optional(Schema.String), message: optional(Schema.String) })),
  running: optional(Schema.Struct({ startedAt: optionalNullable(Schema.String) })),
  terminated: optional(Terminated)
})

const ContainerStatus = Schema.Struct({
  name: Schema.String,
  ready: Schema.Boolean,
  restartCount: Schema.Number,
  started: optionalNullable(Schema.Boolean),
  state: optional(ContainerState),
  lastState: optional(ContainerState)
})
export type ContainerStatus = typeof ContainerStatus.Type

const Condition = Schema.Struct({
  type: Schema.String,
  status: Schema.String,
  reason: optional(Schema.String),
  message: optional(Schema.String),
  lastTransitionTime: optionalNullable(Schema.String)
})
export type Condition = typeof Condition.Type

const NodeSelectorTerms = Schema.Struct({
  nodeSelectorTerms: Schema.Array(
    Schema.Struct({
      matchExpressions: optional(Schema.Array(Schema.Struct({ key: Schema.String, operator: Schema.String, values: optional(Schema.Array(Schema.String)) })))
    })
  )
})

const PodSpec = Schema.Struct({
  nodeName: optional(Schema.String),
  serviceAccountName: optional(Schema.String),
  schedulerName: optional(Schema.String),
  schedulingGates: optional(Schema.Array(Schema.Struct({ name: Schema.String }))),
  restartPolicy: optional(Schema.String),
  terminationGracePeriodSeconds: optionalNullable(Schema.Number),
  activeDeadlineSeconds: optionalNullable(Schema.Number),
  nodeSelector: optional(Labels),
  affinity: optional(
    Schema.NullOr(
      Schema.Struct({
        nodeAffinity: optional(Schema.Struct({ requiredDuringSchedulingIgnoredDuringExecution: optional(NodeSelectorTerms) }))
      })
    )
  ),
  tolerations: optional(
    Schema.Array(
      Schema.Struct({ key: optional(Schema.String), operator: optional(Schema.String), value: optional(Schema.String), effect: optional(Schema.String) })
    )
  ),
  initContainers: optional(Schema.Array(Container)),
  containers: Schema.Array(Container),
  volumes: optional(Schema.Array(Volume))
})

/**
 * A pod with the fields that the node and the scheduler read. It must not be written back, because all other fields are
 * missing.
 */
export const BoundPod = defineResource({
  group: "",
  version: "v1",
  plural: "pods",
  kind: "Pod",
  namespaced: true,
  schema: objectSchema({
    spec: PodSpec,
    status: optional(
      Schema.Struct({
        phase: optional(Schema.String),
        podIP: optional(Schema.String),
        startTime: optional(Schema.String),
        conditions: optional(Schema.Array(Condition)),
        initContainerStatuses: optional(Schema.Array(ContainerStatus)),
        containerStatuses: optional(Schema.Array(ContainerStatus))
      })
    )
  })
})
export type BoundPod = (typeof BoundPod.schema)["Type"]

/** Whether the pod has ended. A pod never runs again after that. */
export const isFinished = (pod: BoundPod) => pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed"

export const uidOf = (pod: BoundPod) => pod.metadata.uid ?? ""
export const namespaceOf = (pod: BoundPod) => pod.metadata.namespace ?? "default"
