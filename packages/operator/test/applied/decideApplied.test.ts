import { assert, describe, it } from "@effect/vitest"
import { type Binding, ModelNameTaken, NamedModelRefused } from "@seatrial/store"
import { Applied, type AppliedRefusal, decideApplied, type ObservedApplied } from "../../src/applied/decideApplied.ts"
import { desiredSpecHash, toDesiredSpec } from "../../src/applied/desiredSpec.ts"
import { notAdopted } from "../../src/applied/notAdopted.ts"
import type { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { deploymentId, modelId, orgId } from "../observations.ts"

const spec: ModelDeployment["spec"] = { source: { repo: "seatrial/tiny-chat" } }
const object = (metadata: Partial<ModelDeployment["metadata"]> = {}, change: Partial<ModelDeployment["spec"]> = {}): ModelDeployment => ({
  metadata: { name: "tiny", namespace: "seatrial", uid: "u1", generation: 1, ...metadata },
  spec: { ...spec, ...change }
})
const binding: Binding = {
  orgId,
  orgSlug: "acme",
  uid: "u1",
  generation: 1,
  specHash: "same",
  modelId,
  namesModel: false,
  repo: "seatrial/tiny-chat",
  modelDeleted: false,
  replicas: null,
  scaling: null,
  deploymentId,
  phase: "booting"
}
const owner = { orgId, active: true, firstPurchase: true, usedUp: null }
const observed: ObservedApplied = {
  namespace: "seatrial",
  resource: object(),
  spec,
  unreadable: null,
  organization: "acme",
  owner,
  binding: null,
  specHash: "same",
  problem: null,
  scalingProblem: null,
  requireFirstPurchase: true
}
const run = deploymentId
const unreadable = { spec: null, unreadable: "spec.serving.maxContext must be an integer" }

/** The plain observation with a change. The specification is that of the object. */
const observe = ({ resource = object(), ...change }: Partial<Omit<ObservedApplied, "resource">> & { readonly resource?: ModelDeployment | null }) => ({
  ...observed,
  resource,
  spec: resource?.spec ?? null,
  ...change
})

describe("an applied object", () => {
  const cases: ReadonlyArray<readonly [why: string, change: Parameters<typeof observe>[0], wanted: Applied]> = [
    ["is adopted if nothing is bound to it", {}, Applied.Adopt()],
    ["is kept if this version of it has its run", { binding }, Applied.Keep({ run })],
    ["is kept even if it would be refused now", { binding, organization: null, owner: null, problem: "x" }, Applied.Keep({ run })],
    ["is adopted again if it was changed", { binding, resource: object({ generation: 2 }), specHash: "other" }, Applied.Adopt()],
    ["creates no run if only its version changed", { binding, resource: object({ generation: 2 }) }, Applied.Rebind({ run })],
    [
      "is refused if only its version changed and it sets an invalid number of engines, and its run continues",
      { binding, resource: object({ generation: 2 }), scalingProblem: "wrong limits.", problem: "wrong limits." },
      Applied.Refuse({ run, reason: "Invalid", message: "wrong limits." })
    ],
    [
      "creates no run if only its version changed, although its host class is gone",
      { binding, resource: object({ generation: 2 }), problem: "no such class" },
      Applied.Rebind({ run })
    ],
    ["is bound to the same run if it was created again", { binding, resource: object({ uid: "u2" }) }, Applied.Rebind({ run })],
    [
      "is tried again if it was created again and the last run failed",
      { binding: { ...binding, phase: "failed" }, resource: object({ uid: "u2" }) },
      Applied.Adopt()
    ],
    [
      "is refused if its specification cannot be read, and its run continues",
      { binding, resource: object({ generation: 2 }), ...unreadable },
      Applied.Refuse({
        run,
        reason: "Unreadable",
        message: "Seatrial cannot read this specification: spec.serving.maxContext must be an integer. Correct the field, or delete the object."
      })
    ],
    ["is retired although its specification cannot be read", { binding, resource: object({ deletionTimestamp: "x" }), ...unreadable }, Applied.Retire()],
    ["is kept if this version has a run that an earlier release accepted", { binding, ...unreadable }, Applied.Keep({ run })],
    ["is not tried again by itself", { binding: { ...binding, phase: "failed" } }, Applied.Keep({ run })],
    ["is retired if it is being deleted", { binding, resource: object({ deletionTimestamp: "2026-01-01T00:00:00Z" }) }, Applied.Retire()],
    ["is retired even if nothing is bound to it, so that its finalizer is removed", { resource: object({ deletionTimestamp: "x" }) }, Applied.Retire()],
    ["triggers a pass of its run if it is gone", { binding, resource: null }, Applied.Pass({ run })],
    ["is ignored if it is gone and nothing was bound to it", { resource: null }, Applied.Pass({ run: null })],
    ["is deleted with its model, by its run", { binding: { ...binding, modelDeleted: true } }, Applied.Pass({ run })],
    [
      "creates a new model if it was applied again after its model was deleted",
      { binding: { ...binding, modelDeleted: true }, resource: object({ uid: "u2" }) },
      Applied.Adopt()
    ],
    ["needs no purchase if none is required", { owner: { ...owner, firstPurchase: false }, requireFirstPurchase: false }, Applied.Adopt()],
    [
      "is bound to the same run if its organization was added",
      { binding, resource: object({ generation: 2 }, { organization: "acme" }) },
      Applied.Rebind({ run })
    ],
    ["is bound to the same run if a refused organization was removed", { binding, resource: object({ generation: 3 }) }, Applied.Rebind({ run })],
    ["may name its organization", { resource: object({}, { organization: "acme" }) }, Applied.Adopt()]
  ]
  for (const [why, change, wanted] of cases) {
    it(why, () => assert.deepStrictEqual(decideApplied(observe(change)), wanted))
  }

  /** The texts are what users read in the condition and the event. */
  const refusals: ReadonlyArray<readonly [reason: string, message: string, change: Parameters<typeof observe>[0]]> = [
    [
      "NoOrganization",
      "The namespace seatrial is not mapped to an organization. Set the operator's OPERATOR_ORGANIZATION to an organization's slug (OPERATOR_ORGANIZATIONS for other namespaces), or deploy through the API.",
      { organization: null, owner: null }
    ],
    [
      "OrganizationUnknown",
      "The organization acme does not exist. Create it with seatrial admin orgs create acme, or correct the operator's setting.",
      { owner: null }
    ],
    ["OrganizationSuspended", "The organization acme is suspended. Resume it with seatrial admin orgs resume acme.", { owner: { ...owner, active: false } }],
    [
      "OrganizationMismatch",
      "The namespace seatrial belongs to the organization acme, not to other. Remove spec.organization, or use another namespace.",
      { resource: object({}, { organization: "other" }) }
    ],
    [
      "OrganizationMismatch",
      "The model belongs to the organization other, but the namespace now belongs to acme. Delete this object and apply it again.",
      { binding: { ...binding, orgSlug: "other" }, resource: object({ generation: 2 }), specHash: "other" }
    ],
    ["Invalid", "ref must not contain '..'.", { problem: "ref must not contain '..'." }],
    [
      "Invalid",
      "The model uses the repository a/b. To deploy another repository, apply a ModelDeployment with another name.",
      { binding: { ...binding, repo: "a/b" }, resource: object({ generation: 2 }), specHash: "other" }
    ],
    [
      "FirstPurchaseRequired",
      "The organization acme has made no purchase, or its billing is suspended. Record a purchase (seatrial admin purchases record --org acme <micro-dollars>), or resume its billing (seatrial admin billing resume --org acme).",
      { owner: { ...owner, firstPurchase: false } }
    ],
    [
      "BalanceUsedUp",
      "The prepaid balance of the organization acme is used up, so no GPU is requested. Record a purchase (seatrial admin purchases record --org acme <micro-dollars>) or grant a credit. The object is deployed within a minute after that.",
      { owner: { ...owner, usedUp: "balance" } }
    ],
    [
      "SpendLimitReached",
      "The daily spend limit of the organization acme is used up, so no GPU is requested. Raise the limit (seatrial admin limits set --org acme --day <micro-dollars>), or wait until the next day begins (UTC). The object is deployed within a minute after that.",
      { owner: { ...owner, usedUp: "day" } }
    ],
    [
      "SpendLimitReached",
      "The monthly spend limit of the organization acme is used up, so no GPU is requested. Raise the limit (seatrial admin limits set --org acme --month <micro-dollars>), or wait until the next month begins (UTC). The object is deployed within a minute after that.",
      { owner: { ...owner, usedUp: "month" } }
    ],
    [
      "OrganizationMismatch",
      "The namespace seatrial belongs to the organization acme, not to other. Remove spec.organization, or use another namespace.",
      { binding, resource: object({ generation: 2 }, { organization: "other" }) }
    ],
    [
      "BalanceUsedUp",
      "The prepaid balance of the organization acme is used up, so no GPU is requested. Record a purchase (seatrial admin purchases record --org acme <micro-dollars>) or grant a credit. The object is deployed within a minute after that.",
      { owner: { ...owner, usedUp: "balance" }, binding, resource: object({ generation: 2 }), specHash: "other" }
    ]
  ]
  for (const [reason, message, change] of refusals) {
    it(`is refused with ${reason}: ${message.slice(0, 70)}`, () => {
      const decision = decideApplied(observe(change))
      assert.deepInclude(decision, { _tag: "Refuse", reason, message })
    })
  }
})

describe("an object for which the store created no run", () => {
  const refused = (why: NamedModelRefused["why"], conflict = "") => notAdopted(new NamedModelRefused({ why, conflict }), object({}, { modelId }), "acme")
  it("states the conflict, and reports a model of another organization as one that does not exist", () => {
    const cases: ReadonlyArray<readonly [refusal: AppliedRefusal, reason: string, message: string]> = [
      [
        notAdopted(new ModelNameTaken({ slug: "tiny" }), object(), "acme"),
        "NameTaken",
        "The organization acme already has a model tiny. Give this object another name, or delete that model first. To revise that model, apply an object with its id as spec.modelId."
      ],
      [
        refused("NotFound"),
        "ModelUnknown",
        `The organization acme has no model ${modelId}. Apply another object with the right spec.modelId (seatrial models list), or without spec.modelId for a new model.`
      ],
      [
        refused("OtherRepository", "a/b"),
        "Invalid",
        `The model ${modelId} uses the repository a/b. To deploy another repository, apply a ModelDeployment without modelId, which creates a new model.`
      ],
      [refused("Applied", "team/other"), "ModelTaken", `The ModelDeployment team/other already represents the model ${modelId}. Change that object instead.`]
    ]
    for (const [refusal, reason, message] of cases) assert.deepStrictEqual(refusal, { reason, message })
  })
})

describe("the hash of a specification", () => {
  it("does not depend on the order of fields or on explicit defaults", () => {
    const one = desiredSpecHash(toDesiredSpec({ ...spec, serving: { maxContext: 512, engineFlags: { a: 1, b: { c: 2, d: 3 } } } }))
    const other = desiredSpecHash(toDesiredSpec({ serve: true, serving: { engineFlags: { b: { d: 3, c: 2 }, a: 1 }, maxContext: 512 }, ...spec }))
    assert.strictEqual(one, other)
    assert.notStrictEqual(one, desiredSpecHash(toDesiredSpec({ ...spec, serving: { maxContext: 513 } })))
    assert.notStrictEqual(desiredSpecHash(toDesiredSpec(spec)), desiredSpecHash(toDesiredSpec({ ...spec, serve: false })))
    assert.notStrictEqual(desiredSpecHash(toDesiredSpec(spec)), desiredSpecHash(toDesiredSpec({ ...spec, modelId })))
  })
})
