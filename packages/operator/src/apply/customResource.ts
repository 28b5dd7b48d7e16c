import type { KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { type ModelDeploymentSpec, toSpecServing } from "../resources/ModelDeployment.ts"
import { objectName } from "../resources/objectNames.ts"
import { runLabels } from "./engineObjects.ts"

/** The custom resource of a run that was made through the API: all of it follows from the run's row. */
export const customResource = (run: Run, namespace: string): KubeObject => {
  const spec: ModelDeploymentSpec = {
    organization: run.orgSlug,
    model: run.model.slice(run.model.indexOf("/") + 1),
    deploymentId: run.id,
    source: { repo: run.source.repo, ...(run.source.ref === undefined ? {} : { ref: run.source.ref }) },
    serving: toSpecServing(run.servingRequest),
    serve: run.serve
  }
  const object = {
    apiVersion: "seatrial.dev/v1alpha1",
    kind: "ModelDeployment",
    metadata: { name: objectName(run.id), namespace, labels: runLabels(run, "deployment") },
    spec
  }
  return object
}
