import { hostClass } from "../cluster/HelmCluster.ts"
import { serving, source } from "../e2e/Served.ts"

/** A host class and a model of the sample repository, as an organization keeps them in Git. */
export const modelObjects = () =>
  [
    hostClass(),
    {
      apiVersion: "seatrial.dev/v1alpha1",
      kind: "ModelDeployment",
      metadata: { name: "tiny" },
      spec: { source: { repo: source.repo }, serving: { hostClass: serving.host_class, maxContext: serving.max_context } }
    }
  ] as const
