import { optionalNullable } from "@seatrial/domain"
import { Schema } from "effect"
import type { BoundPod } from "./PodObject.ts"

const optional = Schema.optionalKey

/** A rule of a Job's `podFailurePolicy` about the exit code of a container or a condition of its pod. */
export const PodFailureRule = Schema.Struct({
  action: Schema.String,
  onExitCodes: optional(
    Schema.NullOr(Schema.Struct({ containerName: optionalNullable(Schema.String), operator: Schema.String, values: Schema.Array(Schema.Number) }))
  ),
  onPodConditions: optionalNullable(Schema.Array(Schema.Struct({ type: Schema.String, status: optional(Schema.String) })))
})
export type PodFailureRule = typeof PodFailureRule.Type

/** Why a rule matches a pod, with the message of Kubernetes. */
const matchOf = ({ onExitCodes, onPodConditions }: PodFailureRule, { metadata, status }: BoundPod): string | undefined => {
  const pod = `${metadata.namespace ?? "default"}/${metadata.name}`
  if (onExitCodes !== undefined && onExitCodes !== null) {
    const { containerName, operator, values } = onExitCodes
    const ended = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].find(({ name, state }) => {
      const code = state?.terminated?.exitCode ?? 0
      return code !== 0 && (containerName ?? name) === name && values.includes(code) === (operator === "In")
    })
    return ended === undefined ? undefined : `Container ${ended.name} for pod ${pod} failed with exit code ${ended.state?.terminated?.exitCode}`
  }
  const condition = (onPodConditions ?? []).find(({ status: wanted = "True", type }) =>
    status?.conditions?.some((condition) => condition.type === type && condition.status === wanted)
  )
  return condition === undefined ? undefined : `Pod ${pod} has condition ${condition.type}`
}

/** The first rule of a Job that matches a failed pod decides. A failure that matches no rule counts. */
export const podFailure = (rules: ReadonlyArray<PodFailureRule>, pod: BoundPod): { readonly ignored: boolean; readonly fatal?: string } => {
  if (pod.status?.phase !== "Failed") return { ignored: false }
  for (const [index, rule] of rules.entries()) {
    const match = matchOf(rule, pod)
    if (match === undefined) continue
    return { ignored: rule.action === "Ignore", ...(rule.action === "FailJob" ? { fatal: `${match} matching FailJob rule at index ${index}` } : {}) }
  }
  return { ignored: false }
}
