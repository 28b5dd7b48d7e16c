import type { Job, Pod, PodDisruptionBudget } from "@seatrial/kube"
import type { ModelDeployment, ModelDeploymentStatus } from "../resources/ModelDeployment.ts"

// What the watches' copies keep. There are as many as there are deployments, and most of what the cluster says of each is read by nobody here.

const present = <K extends string, A>(key: K, value: A | undefined): { readonly [P in K]?: A } => {
  const out: { [P in K]?: A } = {}
  if (value !== undefined) out[key] = value
  return out
}

type Container = NonNullable<Pod["spec"]>["containers"][number]

const keptContainer = ({ image, name, ports, resources }: Container): Container => ({
  name,
  ...present("image", image),
  ...present("ports", ports),
  ...present("resources", resources)
})

/** Of a pod: where it is, what it holds and mounts, and its status; not what its containers are told. */
export const keptPod = ({ metadata, spec, status }: Pod): Pod => ({
  metadata,
  ...(spec === undefined
    ? {}
    : {
        spec: {
          ...present("nodeName", spec.nodeName),
          ...present("schedulingGates", spec.schedulingGates),
          containers: spec.containers.map(keptContainer),
          ...present(
            "initContainers",
            spec.initContainers?.map((container) => ({ ...keptContainer(container), ...present("args", container.args) }))
          ),
          volumes: (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim }) =>
            persistentVolumeClaim === undefined ? [] : [{ name, persistentVolumeClaim }]
          )
        }
      }),
  ...present("status", status)
})

/** Of a Job: how it goes. */
export const keptJob = ({ metadata, status }: Job): Job => ({ metadata, ...present("status", status) })

/** Of a disruption budget: that it is there. */
export const keptBudget = ({ metadata: { deletionTimestamp, name, namespace, resourceVersion, uid } }: PodDisruptionBudget): PodDisruptionBudget => ({
  metadata: {
    name,
    ...present("namespace", namespace),
    ...present("uid", uid),
    ...present("resourceVersion", resourceVersion),
    ...present("deletionTimestamp", deletionTimestamp)
  }
})

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
