import type { KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { ModelDeployment, type ModelDeploymentSpec, toSpecServing } from "../resources/ModelDeployment.ts"
import { finalizer, objectName, organizationLabel } from "../resources/objectNames.ts"
import { runLabels, standardLabels } from "./engineObjects.ts"

/** The place of a run's custom resource: its own, or the applied object. */
export const resourcePlace = ({ applied, id }: Run, namespace: string): { readonly name: string; readonly namespace: string } =>
  applied === null ? { name: objectName(id), namespace } : { name: applied.name, namespace: applied.namespace }

/** The number of engines or the limits that an applied object sets. */
const appliedScaling = (current: NonNullable<Run["applied"]>["current"]): Pick<ModelDeploymentSpec, "replicas" | "scaling"> => {
  if (current?.replicas !== undefined) return { replicas: current.replicas }
  if (current?.scaling === undefined) return {}
  const { max_replicas, min_replicas, target } = current.scaling
  return { scaling: { minReplicas: min_replicas, maxReplicas: max_replicas, ...(target === undefined ? {} : { target }) } }
}

/**
 * The custom resource of a run, for the API or for an applied object that was lost. It follows from the run's row
 * alone.
 */
export const customResource = (run: Run, namespace: string): ModelDeployment & KubeObject => {
  const specification = {
    source: { repo: run.source.repo, ...(run.source.ref === undefined ? {} : { ref: run.source.ref }) },
    serving: toSpecServing(run.servingRequest),
    serve: run.serve
  }
  const spec: ModelDeploymentSpec =
    run.applied === null
      ? { organization: run.orgSlug, model: run.model.slice(run.model.indexOf("/") + 1), deploymentId: run.id, ...specification }
      : {
          ...(run.applied.current?.namesModel ? { modelId: run.modelId } : {}),
          ...specification,
          ...appliedScaling(run.applied.current)
        }
  const metadata =
    run.applied === null
      ? {
          labels: { ...standardLabels({ id: run.id, component: "deployment", program: "seatrial-deployment", version: null }), ...runLabels(run, "deployment") }
        }
      : { labels: { "app.kubernetes.io/managed-by": "seatrial", [organizationLabel]: run.orgSlug }, finalizers: [finalizer] }
  return {
    apiVersion: "seatrial.dev/v1alpha1",
    kind: ModelDeployment.kind,
    metadata: { ...resourcePlace(run, namespace), ...metadata },
    spec
  }
}
