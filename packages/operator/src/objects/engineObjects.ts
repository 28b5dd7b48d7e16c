import { createHash } from "node:crypto"
import type { DeploymentId, HostClass, Runtime } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { deploymentLabel, objectName, organizationLabel, roleLabel } from "../resources/objectNames.ts"

/** Labels of every object of a run, by which Seatrial and its network policies select it. */
export const runLabels = (run: Run, role: "engine" | "fetch" | "deployment"): Readonly<Record<string, string>> => ({
  "app.kubernetes.io/managed-by": "seatrial",
  [organizationLabel]: run.orgSlug,
  [deploymentLabel]: run.id,
  ...(role === "deployment" ? {} : { [roleLabel]: role })
})

/** The text as a label value: at most 63 characters, with a letter or digit at both ends. Null if nothing is left. */
const labelValue = (text: string): string | null => {
  const value = text
    .replace(/[^A-Za-z0-9_.-]/gu, "-")
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/gu, "")
  return value === "" ? null : value
}

interface Described {
  readonly id: DeploymentId
  readonly component: "engine" | "download" | "deployment"
  /** The program that runs: an engine, or Seatrial's own command. */
  readonly program: string
  /** The version of the program; null if it is not known. */
  readonly version: string | null
}

/**
 * The recommended labels of Kubernetes (kubernetes.io/docs/concepts/overview/working-with-objects/common-labels), in
 * addition to `runLabels`. Nothing selects by them. The name is never `seatrial`, which the chart's network
 * policies admit to Postgres.
 */
export const standardLabels = ({ component, id, program, version }: Described): Readonly<Record<string, string>> => {
  const shownVersion = version === null ? null : labelValue(version)
  return {
    "app.kubernetes.io/name": program,
    "app.kubernetes.io/instance": objectName(id),
    "app.kubernetes.io/component": component,
    "app.kubernetes.io/part-of": "seatrial",
    ...(shownVersion === null ? {} : { "app.kubernetes.io/version": shownVersion })
  }
}

/** The standard labels of an engine's pod and its disruption budget. */
export const engineLabels = ({ id, revision }: Run) =>
  standardLabels({ id, component: "engine", program: revision?.settings.runtime ?? "engine", version: revision?.engineVersion ?? null })

/** The Pod Security standard `restricted`. */
export const restrictedPod = { runAsNonRoot: true, runAsUser: 2000, runAsGroup: 2000, fsGroup: 2000, seccompProfile: { type: "RuntimeDefault" } }
export const restrictedContainer = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } }

/** The image pull secrets of a pod. */
export const pullSecrets = ({ pullSecrets }: Pick<OperatorSettings, "pullSecrets">) =>
  pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }

/** The image with which the class runs the engine. */
export const imageOn = ({ runtimes }: HostClass, runtime: Runtime): string =>
  runtimes.find((offered) => offered.runtime === runtime)?.image ?? runtimes[0].image

/**
 * Variables that do not change the specification: the trace of the request, and the hub token, whose existence only the
 * database knows.
 */
const ignoredVariables = new Set<unknown>(["TRACEPARENT", "HF_TOKEN"])

/** Digest that identifies a specification. Variables of `ignoredVariables` do not count. */
export const digestOf = (spec: object): string => {
  const text = JSON.stringify(spec, (key, value: unknown) =>
    key === "env" && Array.isArray(value) ? value.filter(({ name }) => !ignoredVariables.has(name)) : value
  )
  return createHash("sha256").update(text).digest("hex").slice(0, 32)
}
