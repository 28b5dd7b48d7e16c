import { Schema } from "effect"
import { Affinity } from "./Affinity.ts"

const optional = Schema.optionalKey

/** A name of a Kubernetes object. */
export const objectNamePattern = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/u
const objectNameText = Schema.String.check(Schema.isPattern(objectNamePattern))

const EnvVariable = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/u), Schema.isMaxLength(128)).annotate({ description: "Name of the variable." }),
  value: Schema.String.check(Schema.isMaxLength(4_096)).annotate({ description: "Value of the variable. $(POD_IP) is replaced by the address of the pod." })
})

const ResourceClaim = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/u)).annotate({ description: "Name of the claim within the pod." }),
  resourceClaimName: optional(objectNameText.annotate({ description: "ResourceClaim of the operator's namespace that all engines of the class share." })),
  resourceClaimTemplateName: optional(
    objectNameText.annotate({ description: "ResourceClaimTemplate of the operator's namespace, from which each engine gets a claim of its own." })
  )
})

/** Fields of a host class that its engines' pods get as they are. */
export const podSettings = {
  priorityClassName: optional(objectNameText.annotate({ description: "PriorityClass of engine pods. Default: that of the cluster." })),
  schedulerName: optional(objectNameText.annotate({ description: "Scheduler of engine pods. Default: default-scheduler." })),
  labels: optional(
    Schema.Record(Schema.String, Schema.String.check(Schema.isMaxLength(63)))
      .check(Schema.isMaxProperties(32))
      .annotate({ description: "Further labels of engine pods. Labels that Seatrial sets are reserved." })
  ),
  annotations: optional(
    Schema.Record(Schema.String, Schema.String.check(Schema.isMaxLength(4_096)))
      .check(Schema.isMaxProperties(32))
      .annotate({ description: "Further annotations of engine pods. Those of seatrial.dev/ are reserved." })
  ),
  env: optional(
    Schema.Array(EnvVariable)
      .check(Schema.isMaxLength(64))
      .annotate({ description: "Further environment variables of engines, for example NCCL_IB_HCA. Variables that Seatrial sets are reserved." })
  ),
  affinity: optional(
    Affinity.annotate({ description: "Affinity of engine pods, as in a pod. Nodes that a required node affinity excludes do not belong to the class." })
  ),
  extraResources: optional(
    Schema.Record(
      Schema.String,
      Schema.String.check(Schema.isPattern(/^[1-9][0-9]{0,14}(k|M|G|T|Ki|Mi|Gi|Ti)?$/u)).annotate({ description: "Amount, as a Kubernetes quantity." })
    )
      .check(Schema.isMaxProperties(16))
      .annotate({ description: "Further resources of an engine, for example rdma/hca: 1 or hugepages-1Gi: 4Gi, as requests and limits." })
  ),
  resourceClaims: optional(
    Schema.Array(ResourceClaim).check(Schema.isMaxLength(16)).annotate({
      description: "Claims of dynamic resource allocation, in addition to gpuResource, for example network devices. GPUs are counted by gpuResource alone."
    })
  )
}
