import type { DeploymentId } from "@seatrial/domain"
import type { Binding, ResourceOwner } from "@seatrial/store"
import { Data } from "effect"
import { describeFunding } from "../decide/funding.ts"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"

/** The state of an applied object, or of its place. */
export interface ObservedApplied {
  readonly namespace: string
  /** Null if the object does not exist. */
  readonly resource: ModelDeployment | null
  /** Slug of the organization that the namespace is mapped to; null if there is none. */
  readonly organization: string | null
  /** That organization; null if no organization has that slug. */
  readonly owner: ResourceOwner | null
  /** The model and the newest run that are bound to the object; null if there are none. */
  readonly binding: Binding | null
  /** Hash of the specification; see `desiredSpecHash`. */
  readonly specHash: string
  /** What is invalid in the specification, by itself or on this cluster; null if nothing is. */
  readonly problem: string | null
  readonly requireFirstPurchase: boolean
}

type None = Record<never, never>

/** The decision. `run`: the run that needs a pass afterward. */
export type Applied = Data.TaggedEnum<{
  /** No action: the object does not exist, or is deleted with its model. */
  Look: { readonly run: DeploymentId | null }
  /** The specification already has its run. */
  Keep: { readonly run: DeploymentId }
  /** Another version of the object with the same specification. */
  Rebind: { readonly run: DeploymentId }
  Adopt: None
  /** The object was deleted. */
  Retire: None
  Refuse: { readonly reason: string; readonly message: string; readonly run: DeploymentId | null }
}>
export const Applied = Data.taggedEnum<Applied>()

/** The object is checked again every minute, so that it is deployed once the organization has funds again. */
const waitsForMoney = (organization: string, usedUp: NonNullable<ResourceOwner["usedUp"]>) => {
  const { problem, reason, remedy } = describeFunding(organization, usedUp)
  return { reason, message: `${problem}, so no GPU is requested. ${remedy} It is deployed within a minute after that.` }
}

/** Why the specification is refused, and what to do; null if it is not. */
const refusal = (observed: ObservedApplied): { readonly reason: string; readonly message: string } | null => {
  const { binding, namespace, organization, owner, problem, requireFirstPurchase, resource } = observed
  const spec = resource?.spec
  if (organization === null) {
    return {
      reason: "NoOrganization",
      message: `The namespace ${namespace} is not mapped to an organization. Set the operator's OPERATOR_ORGANIZATION to an organization's slug (OPERATOR_ORGANIZATIONS for other namespaces), or deploy through the API.`
    }
  }
  if (owner === null) {
    return {
      reason: "OrganizationUnknown",
      message: `The organization ${organization} does not exist. Create it with seatrial admin orgs create ${organization}, or correct the operator's setting.`
    }
  }
  if (spec?.organization !== undefined && spec.organization !== organization) {
    return {
      reason: "OrganizationMismatch",
      message: `The namespace ${namespace} belongs to the organization ${organization}, not to ${spec.organization}. Remove spec.organization, or use another namespace.`
    }
  }
  if (binding !== null && !binding.modelDeleted && binding.orgSlug !== organization) {
    return {
      reason: "OrganizationMismatch",
      message: `The model belongs to the organization ${binding.orgSlug}, but the namespace now belongs to ${organization}. Delete this object and apply it again.`
    }
  }
  if (!owner.active)
    return {
      reason: "OrganizationSuspended",
      message: `The organization ${organization} is suspended. Resume it with seatrial admin orgs resume ${organization}.`
    }
  if (problem !== null) return { reason: "Invalid", message: problem }
  if (binding !== null && !binding.modelDeleted && binding.repo !== spec?.source.repo) {
    return {
      reason: "Invalid",
      message: `The model uses the repository ${binding.repo}. To deploy another repository, apply a ModelDeployment with another name.`
    }
  }
  if (requireFirstPurchase && !owner.firstPurchase) {
    return {
      reason: "FirstPurchaseRequired",
      message: `The organization ${organization} may deploy after its first purchase (seatrial admin purchases record --org ${organization} <micro-dollars>), and while its billing is not suspended (seatrial admin billing resume --org ${organization}).`
    }
  }
  return owner.usedUp === null ? null : waitsForMoney(organization, owner.usedUp)
}

/** Decides about an applied object. Pure: repeated decisions about the same object create one run. */
export const decideApplied = (observed: ObservedApplied): Applied => {
  const { binding, resource, specHash } = observed
  const run = binding?.deploymentId ?? null
  if (resource === null) return Applied.Look({ run })
  const { deletionTimestamp, generation = 1, uid = "" } = resource.metadata
  if (deletionTimestamp !== undefined) return Applied.Retire()
  const same = binding !== null && binding.uid === uid && binding.generation === generation
  if (binding?.modelDeleted && same) return Applied.Look({ run })
  if (same) return Applied.Keep({ run: binding.deploymentId })
  // Applying the same specification as a new object is a request to try again if the last run failed or was canceled.
  const again = binding !== null && binding.uid !== uid && (binding.phase === "failed" || binding.phase === "cancelled")
  const unchanged = binding !== null && !binding.modelDeleted && binding.specHash === specHash && !again
  const moved = unchanged && resource.spec.organization !== undefined && resource.spec.organization !== binding.orgSlug
  if (unchanged && !moved) return Applied.Rebind({ run: binding.deploymentId })
  const refused = refusal(observed)
  return refused === null ? Applied.Adopt() : Applied.Refuse({ ...refused, run })
}
