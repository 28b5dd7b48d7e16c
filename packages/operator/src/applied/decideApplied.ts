import { type DeploymentId, endedUnactivated } from "@seatrial/domain"
import type { Binding, ResourceOwner } from "@seatrial/store"
import { Data } from "effect"
import { describeFunding } from "../decide/funding.ts"
import type { ModelDeploymentSpec } from "../resources/ModelDeployment.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"

/** The state of an applied object, or of its place. */
export interface ObservedApplied {
  readonly namespace: string
  /** Null if the object does not exist. */
  readonly resource: WatchedDeployment | null
  /** Its specification; null if the object does not exist or its specification cannot be read. */
  readonly spec: ModelDeploymentSpec | null
  /** Which field of the specification cannot be read, and why; null if it can be read. */
  readonly unreadable: string | null
  /** Slug of the organization that the namespace is mapped to; null if there is none. */
  readonly organization: string | null
  /** That organization; null if no organization has that slug. */
  readonly owner: ResourceOwner | null
  /** The model and the newest run that are bound to the object; null if there are none. */
  readonly binding: Binding | null
  /** Hash of the specification; see `desiredSpecHash`. */
  readonly specHash: string
  /** The problem of the specification, by itself or on this cluster; null if it is valid. */
  readonly problem: string | null
  /** The problem of the number of engines that it sets, which its hash leaves out; null if it is valid. */
  readonly scalingProblem: string | null
  readonly requireFirstPurchase: boolean
}

type None = Record<never, never>

/** The decision. `run`: the run that needs a pass afterward. */
export type Applied = Data.TaggedEnum<{
  /** No action: the object does not exist, or is deleted with its model. */
  Pass: { readonly run: DeploymentId | null }
  /** The specification already has its run. */
  Keep: { readonly run: DeploymentId }
  /** Another version of the object with the same specification. */
  Rebind: { readonly run: DeploymentId }
  Adopt: None
  /** The object was deleted. */
  Retire: None
  Refuse: AppliedRefusal & { readonly run: DeploymentId | null }
}>
export const Applied = Data.taggedEnum<Applied>()

/** Why a specification is refused, and what to do. `reason`: the reason of the condition and the event. */
export interface AppliedRefusal {
  readonly reason: string
  readonly message: string
}

/** An object in a namespace of an organization that exists. */
interface OwnedApplied extends ObservedApplied {
  readonly organization: string
  readonly owner: ResourceOwner
}

/** One reason to refuse a specification, or null. */
type RefusalRule = (observed: OwnedApplied) => AppliedRefusal | null

const noOrganization = (namespace: string): AppliedRefusal => ({
  reason: "NoOrganization",
  message: `The namespace ${namespace} is not mapped to an organization. Set the operator's OPERATOR_ORGANIZATION to an organization's slug (OPERATOR_ORGANIZATIONS for other namespaces), or deploy through the API.`
})

const unknownOrganization = (organization: string): AppliedRefusal => ({
  reason: "OrganizationUnknown",
  message: `The organization ${organization} does not exist. Create it with seatrial admin orgs create ${organization}, or correct the operator's setting.`
})

const unreadableSpec = ({ unreadable }: ObservedApplied): AppliedRefusal => ({
  reason: "Unreadable",
  message: `Seatrial cannot read this specification: ${unreadable ?? "it is missing"}. Correct the field, or delete the object.`
})

/** The binding to the object's model; null if there is none or the model was deleted. */
const liveBinding = ({ binding }: ObservedApplied): Binding | null => (binding === null || binding.modelDeleted ? null : binding)

const otherNamespace: RefusalRule = ({ namespace, organization, spec }) => {
  const requested = spec?.organization
  return requested === undefined || requested === organization
    ? null
    : {
        reason: "OrganizationMismatch",
        message: `The namespace ${namespace} belongs to the organization ${organization}, not to ${requested}. Remove spec.organization, or use another namespace.`
      }
}

const otherOwner: RefusalRule = (observed) => {
  const owner = liveBinding(observed)?.orgSlug ?? observed.organization
  return owner === observed.organization
    ? null
    : {
        reason: "OrganizationMismatch",
        message: `The model belongs to the organization ${owner}, but the namespace now belongs to ${observed.organization}. Delete this object and apply it again.`
      }
}

const suspended: RefusalRule = ({ organization, owner }) =>
  owner.active
    ? null
    : {
        reason: "OrganizationSuspended",
        message: `The organization ${organization} is suspended. Resume it with seatrial admin orgs resume ${organization}.`
      }

const invalidSpec = (problem: string): AppliedRefusal => ({ reason: "Invalid", message: problem })

const invalid: RefusalRule = ({ problem }) => (problem === null ? null : invalidSpec(problem))

const otherRepository: RefusalRule = (observed) => {
  const binding = liveBinding(observed)
  return binding === null || binding.repo === observed.spec?.source.repo
    ? null
    : {
        reason: "Invalid",
        message: `The model uses the repository ${binding.repo}. To deploy another repository, apply a ModelDeployment with another name.`
      }
}

const noPurchase: RefusalRule = ({ organization, owner, requireFirstPurchase }) =>
  requireFirstPurchase && !owner.firstPurchase
    ? {
        reason: "FirstPurchaseRequired",
        message: `The organization ${organization} has made no purchase, or its billing is suspended. Record a purchase (seatrial admin purchases record --org ${organization} <micro-dollars>), or resume its billing (seatrial admin billing resume --org ${organization}).`
      }
    : null

/** The object is checked again every minute, so that it is deployed once the organization has funds again. */
const noFunds: RefusalRule = ({ organization, owner }) => {
  if (owner.usedUp === null) return null
  const { problem, reason, remedy } = describeFunding(organization, owner.usedUp)
  return { reason, message: `${problem}, so no GPU is requested. ${remedy} The object is deployed within a minute after that.` }
}

/** In the order of their precedence. */
const refusalRules: ReadonlyArray<RefusalRule> = [otherNamespace, otherOwner, suspended, invalid, otherRepository, noPurchase, noFunds]

/** Why the specification is refused; null if it is not. */
const refusal = (observed: ObservedApplied): AppliedRefusal | null => {
  const { namespace, organization, owner } = observed
  if (organization === null) return noOrganization(namespace)
  if (owner === null) return unknownOrganization(organization)
  for (const rule of refusalRules) {
    const refused = rule({ ...observed, organization, owner })
    if (refused !== null) return refused
  }
  return null
}

/** Whether the run is bound to exactly this version of the object. */
const isSameVersion = ({ metadata: { generation = 1, uid = "" } }: WatchedDeployment, binding: Binding): boolean =>
  binding.uid === uid && binding.generation === generation

/** Applying the same specification as a new object is a request to try again if the last run failed or was canceled. */
const isRetry = ({ metadata: { uid = "" } }: WatchedDeployment, binding: Binding): boolean => binding.uid !== uid && endedUnactivated(binding.phase)

/** Whether the run has this specification and this organization. */
const isSameSpec = ({ organization }: ModelDeploymentSpec, binding: Binding, specHash: string): boolean =>
  binding.specHash === specHash && (organization === undefined || organization === binding.orgSlug)

/** What follows from the metadata alone; null if the decision depends on the specification. */
const decideByMetadata = ({ binding, resource }: ObservedApplied): Applied | null => {
  if (resource === null) return Applied.Pass({ run: binding?.deploymentId ?? null })
  if (resource.metadata.deletionTimestamp !== undefined) return Applied.Retire()
  if (binding === null || !isSameVersion(resource, binding)) return null
  const run = binding.deploymentId
  return binding.modelDeleted ? Applied.Pass({ run }) : Applied.Keep({ run })
}

/** Decides about an applied object. Pure: repeated decisions about the same object create one run. */
export const decideApplied = (observed: ObservedApplied): Applied => {
  const early = decideByMetadata(observed)
  if (early !== null) return early
  const { binding, resource, scalingProblem, spec, specHash } = observed
  const run = binding?.deploymentId ?? null
  if (resource === null || spec === null) return Applied.Refuse({ ...unreadableSpec(observed), run })
  const live = liveBinding(observed)
  if (live !== null && !isRetry(resource, live) && isSameSpec(spec, live, specHash))
    return scalingProblem === null ? Applied.Rebind({ run: live.deploymentId }) : Applied.Refuse({ ...invalidSpec(scalingProblem), run })
  const refused = refusal(observed)
  return refused === null ? Applied.Adopt() : Applied.Refuse({ ...refused, run })
}
