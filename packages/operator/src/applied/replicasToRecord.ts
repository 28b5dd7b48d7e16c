import type { ObservedApplied } from "./decideApplied.ts"

/**
 * The number of engines to record for the object's model, if it differs from the recorded one; null: the object sets no
 * number any more. Undefined if there is nothing to record. It does not depend on whether the rest of the specification
 * is accepted: the model that serves can be scaled while a change of it is refused.
 */
export const replicasToRecord = ({ binding, organization, spec }: ObservedApplied): number | null | undefined => {
  if (spec === null || binding === null || binding.modelDeleted || binding.orgSlug !== organization) return undefined
  if (spec.organization !== undefined && spec.organization !== organization) return undefined
  const wanted = spec.replicas ?? null
  return wanted === binding.replicas ? undefined : wanted
}
