import { createHash } from "node:crypto"
import type { HostClass, Runtime } from "@seatrial/domain"
import type { KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { deploymentLabel, objectName, organizationLabel, roleLabel } from "../resources/objectNames.ts"

/** Labels of every object of a run. */
export const runLabels = (run: Run, role: "engine" | "fetch" | "deployment"): Readonly<Record<string, string>> => ({
  "app.kubernetes.io/managed-by": "seatrial",
  [organizationLabel]: run.orgSlug,
  [deploymentLabel]: run.id,
  ...(role === "deployment" ? {} : { [roleLabel]: role })
})

/** The Pod Security standard `restricted`. */
export const restrictedPod = { runAsNonRoot: true, runAsUser: 2000, runAsGroup: 2000, fsGroup: 2000, seccompProfile: { type: "RuntimeDefault" } }
export const restrictedContainer = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } }

/** The image pull secrets of a pod. */
export const pullSecrets = ({ pullSecrets }: Pick<OperatorSettings, "pullSecrets">) =>
  pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }

/**
 * Protects a serving engine from eviction: a node drain is refused until its requests go to another engine. An engine
 * that is not ready may be evicted. The budget uses a number of pods, because no controller owns the pod.
 */
export const disruptionBudget = (run: Run, namespace: string): KubeObject => {
  const object = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: objectName(run.id), namespace, labels: runLabels(run, "engine") },
    spec: {
      minAvailable: 1,
      unhealthyPodEvictionPolicy: "AlwaysAllow",
      selector: { matchLabels: { [deploymentLabel]: run.id, [roleLabel]: "engine" } }
    }
  }
  return object
}

/** The image with which the class runs the engine. */
export const imageOn = ({ runtimes }: HostClass, runtime: Runtime): string =>
  runtimes.find((offered) => offered.runtime === runtime)?.image ?? runtimes[0].image

/**
 * Variables that do not change the specification: the trace of the request, and the hub token, whose existence only the
 * database knows.
 */
const ignoredVariables = new Set<unknown>(["TRACEPARENT", "HF_TOKEN"])

/** Digest that identifies a specification. Variables of `ignoredVariables` and avoided nodes do not count. */
export const digestOf = (spec: object): string => {
  const text = JSON.stringify(spec, (key, value: unknown) =>
    key === "affinity" ? undefined : key === "env" && Array.isArray(value) ? value.filter(({ name }) => !ignoredVariables.has(name)) : value
  )
  return createHash("sha256").update(text).digest("hex").slice(0, 32)
}
