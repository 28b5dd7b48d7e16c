import { defaultTarget, ScalingRequest } from "@seatrial/domain"
import { Schema } from "effect"
import type { ModelDeploymentSpec } from "../resources/ModelDeployment.ts"
import type { ObservedApplied } from "./decideApplied.ts"

const isSame = Schema.toEquivalence(Schema.NullOr(ScalingRequest))

/** The number of engines that a specification sets, or its limits for the autoscaler; null if it sets neither. */
export const toScalingRequest = ({ replicas, scaling }: ModelDeploymentSpec): ScalingRequest | null => {
  if (replicas !== undefined) return { replicas }
  if (scaling === undefined) return null
  const { maxReplicas, minReplicas, target = defaultTarget } = scaling
  return { min_replicas: minReplicas, max_replicas: maxReplicas, target }
}

/**
 * The number of engines or the limits to record for the object's model, if they differ from the recorded ones; null:
 * the object sets neither any more. Undefined if there is nothing to record, or if the object breaks a rule about them:
 * the model keeps what it has. It does not depend on whether the rest of the specification is accepted: the model that
 * serves can be scaled while a change of it is refused.
 */
export const replicasToRecord = ({ binding, organization, scalingProblem, spec }: ObservedApplied): ScalingRequest | null | undefined => {
  if (spec === null || scalingProblem !== null || binding === null || binding.modelDeleted || binding.orgSlug !== organization) return undefined
  if (spec.organization !== undefined && spec.organization !== organization) return undefined
  const wanted = toScalingRequest(spec)
  return isSame(wanted, binding.replicas === null ? binding.scaling : { replicas: binding.replicas }) ? undefined : wanted
}
