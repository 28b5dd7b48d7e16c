import type { DeploymentId } from "@seatrial/domain"
import type { Binding, ResourceOwner } from "@seatrial/store"
import { Data } from "effect"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"

/** Kept on objects that somebody applied, so that none goes before its deletion is recorded. */
export const finalizer = "seatrial.dev/retire"

/** What is known of an object that somebody applied, or of its place. */
export interface AppliedSeen {
  readonly namespace: string
  /** Null: it is not there. */
  readonly resource: ModelDeployment | null
  /** Slug of the organization that the namespace is mapped to; null for none. */
  readonly organization: string | null
  /** That organization; null where there is none of that slug. */
  readonly owner: ResourceOwner | null
  /** The model and the newest run that stand for it; null for none. */
  readonly binding: Binding | null
  /** Of the specification; see `wishHash`. */
  readonly specHash: string
  /** What is wrong with the specification by itself or on this cluster; null for nothing. */
  readonly problem: string | null
  readonly requireFirstPurchase: boolean
}

type None = Record<never, never>

/** What is done about it. `run`: the run that is to be looked at then. */
export type Applied = Data.TaggedEnum<{
  /** Nothing of the object itself: it is not there, or it goes with its model. */
  Look: { readonly run: DeploymentId | null }
  /** The specification has its run. */
  Keep: { readonly run: DeploymentId }
  /** Another version of the object with the same specification. */
  Rebind: { readonly run: DeploymentId }
  Adopt: None
  /** It was deleted. */
  Retire: None
  Refuse: { readonly reason: string; readonly message: string; readonly run: DeploymentId | null }
}>
export const Applied = Data.taggedEnum<Applied>()

/** The object is checked again every minute, so that it is deployed when there is money again. */
const waitsForMoney = (organization: string, usedUp: NonNullable<ResourceOwner["usedUp"]>) =>
  usedUp === "balance"
    ? {
        reason: "BalanceUsedUp",
        message: `The prepaid balance of the organization ${organization} is used up, so no GPU is requested: record a purchase (seatrial admin purchases record --org ${organization} <micro-dollars>) or grant a credit. It is deployed within a minute after that.`
      }
    : {
        reason: "SpendLimitReached",
        message: `The spend limit of the ${usedUp} of the organization ${organization} is used up, so no GPU is requested: raise it (seatrial admin limits set --org ${organization} --${usedUp} <micro-dollars>), or wait until the next ${usedUp} begins (UTC).`
      }

/** Why the specification becomes no run, and what to do; null where nothing speaks against it. */
const refusal = (seen: AppliedSeen): { readonly reason: string; readonly message: string } | null => {
  const { binding, namespace, organization, owner, problem, requireFirstPurchase, resource } = seen
  const spec = resource?.spec
  if (organization === null) {
    return {
      reason: "NoOrganization",
      message: `The namespace ${namespace} is mapped to no organization: set OPERATOR_ORGANIZATION of the operator to an organization's slug (OPERATOR_ORGANIZATIONS for other namespaces than its own), or deploy through the API.`
    }
  }
  if (owner === null) {
    return {
      reason: "OrganizationUnknown",
      message: `There is no organization ${organization}: make it with seatrial admin orgs create ${organization}, or correct the operator's setting.`
    }
  }
  if (spec?.organization !== undefined && spec.organization !== organization) {
    return {
      reason: "OrganizationMismatch",
      message: `The namespace ${namespace} belongs to the organization ${organization}, not to ${spec.organization}: leave spec.organization out (it may be taken away), or use another namespace.`
    }
  }
  if (binding !== null && !binding.modelDeleted && binding.orgSlug !== organization) {
    return {
      reason: "OrganizationMismatch",
      message: `The model belongs to the organization ${binding.orgSlug}, and the namespace to ${organization} by now: delete this object and apply it again.`
    }
  }
  if (!owner.active)
    return { reason: "OrganizationSuspended", message: `The organization ${organization} is suspended: seatrial admin orgs resume ${organization}.` }
  if (problem !== null) return { reason: "Invalid", message: problem }
  if (binding !== null && !binding.modelDeleted && binding.repo !== spec?.source.repo) {
    return { reason: "Invalid", message: `The model is of the repository ${binding.repo}: for another one apply a ModelDeployment of another name.` }
  }
  if (requireFirstPurchase && !owner.firstPurchase) {
    return {
      reason: "FirstPurchaseRequired",
      message: `The organization ${organization} may deploy after its first purchase (seatrial admin purchases record --org ${organization} <micro-dollars>), and while its billing is not suspended (seatrial admin billing resume --org ${organization}).`
    }
  }
  return owner.usedUp === null ? null : waitsForMoney(organization, owner.usedUp)
}

/** Pure: from what is seen of an object that somebody applied to what is done. The same object is decided on again and again, and made once. */
export const decideApplied = (seen: AppliedSeen): Applied => {
  const { binding, resource, specHash } = seen
  const run = binding?.deploymentId ?? null
  if (resource === null) return Applied.Look({ run })
  const { deletionTimestamp, generation = 1, uid = "" } = resource.metadata
  if (deletionTimestamp !== undefined) return Applied.Retire()
  const same = binding !== null && binding.uid === uid && binding.generation === generation
  if (binding?.modelDeleted && same) return Applied.Look({ run })
  if (same) return Applied.Keep({ run: binding.deploymentId })
  // The same wish in a new object is a wish to try again where the last try came to nothing.
  const again = binding !== null && binding.uid !== uid && (binding.phase === "failed" || binding.phase === "cancelled")
  const unchanged = binding !== null && !binding.modelDeleted && binding.specHash === specHash && !again
  const moved = unchanged && resource.spec.organization !== undefined && resource.spec.organization !== binding.orgSlug
  if (unchanged && !moved) return Applied.Rebind({ run: binding.deploymentId })
  const refused = refusal(seen)
  return refused === null ? Applied.Adopt() : Applied.Refuse({ ...refused, run })
}
