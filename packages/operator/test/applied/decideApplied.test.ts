import { assert, describe, it } from "@effect/vitest"
import { type Binding, ModelNameTaken, NamedModelRefused } from "@seatrial/store"
import { Applied, decideApplied, type ObservedApplied } from "../../src/applied/decideApplied.ts"
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
  deploymentId,
  phase: "booting"
}
const owner = { orgId, active: true, firstPurchase: true, usedUp: null }
const observed: ObservedApplied = {
  namespace: "seatrial",
  resource: object(),
  organization: "acme",
  owner,
  binding: null,
  specHash: "same",
  problem: null,
  requireFirstPurchase: true
}
const run = deploymentId

describe("an applied object", () => {
  const cases: ReadonlyArray<readonly [why: string, change: Partial<ObservedApplied>, wanted: Applied]> = [
    ["is adopted if nothing is bound to it", {}, Applied.Adopt()],
    ["is kept if this version of it has its run", { binding }, Applied.Keep({ run })],
    ["is kept even if it would be refused now", { binding, organization: null, owner: null, problem: "x" }, Applied.Keep({ run })],
    ["is adopted again if it was changed", { binding, resource: object({ generation: 2 }), specHash: "other" }, Applied.Adopt()],
    ["creates no run if only its version changed", { binding, resource: object({ generation: 2 }) }, Applied.Rebind({ run })],
    ["is bound to the same run if it was created again", { binding, resource: object({ uid: "u2" }) }, Applied.Rebind({ run })],
    [
      "is tried again if it was created again and the last run failed",
      { binding: { ...binding, phase: "failed" }, resource: object({ uid: "u2" }) },
      Applied.Adopt()
    ],
    ["is not tried again by itself", { binding: { ...binding, phase: "failed" } }, Applied.Keep({ run })],
    ["is retired if it is being deleted", { binding, resource: object({ deletionTimestamp: "2026-01-01T00:00:00Z" }) }, Applied.Retire()],
    ["is retired even if nothing is bound to it, so that its finalizer is removed", { resource: object({ deletionTimestamp: "x" }) }, Applied.Retire()],
    ["triggers a pass of its run if it is gone", { binding, resource: null }, Applied.Look({ run })],
    ["is ignored if it is gone and nothing was bound to it", { resource: null }, Applied.Look({ run: null })],
    ["is deleted with its model, by its run", { binding: { ...binding, modelDeleted: true } }, Applied.Look({ run })],
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
    it(why, () => assert.deepStrictEqual(decideApplied({ ...observed, ...change }), wanted))
  }

  const refusals: ReadonlyArray<readonly [reason: string, says: RegExp, change: Partial<ObservedApplied>]> = [
    ["NoOrganization", /OPERATOR_ORGANIZATION/, { organization: null, owner: null }],
    ["OrganizationUnknown", /organization acme does not exist/, { owner: null }],
    ["OrganizationSuspended", /orgs resume acme/, { owner: { ...owner, active: false } }],
    ["OrganizationMismatch", /Remove spec.organization/, { resource: object({}, { organization: "other" }) }],
    ["OrganizationMismatch", /Remove spec.organization/, { binding, resource: object({ generation: 2 }, { organization: "other" }) }],
    ["OrganizationMismatch", /Delete this object/, { binding: { ...binding, orgSlug: "other" }, resource: object({ generation: 2 }), specHash: "other" }],
    ["Invalid", /ref must not contain/, { problem: "ref must not contain '..'." }],
    ["Invalid", /another name/, { binding: { ...binding, repo: "a/b" }, resource: object({ generation: 2 }), specHash: "other" }],
    ["FirstPurchaseRequired", /seatrial admin purchases record --org acme/, { owner: { ...owner, firstPurchase: false } }],
    ["BalanceUsedUp", /purchases record --org acme/, { owner: { ...owner, usedUp: "balance" } }],
    [
      "SpendLimitReached",
      /limits set --org acme --day/,
      { owner: { ...owner, usedUp: "day" }, binding, resource: object({ generation: 2 }), specHash: "other" }
    ]
  ]
  for (const [reason, says, change] of refusals) {
    it(`is refused with ${reason} and an instruction: ${says.source}`, () => {
      const decision = decideApplied({ ...observed, ...change })
      assert.strictEqual(decision._tag, "Refuse")
      if (decision._tag !== "Refuse") return
      assert.strictEqual(decision.reason, reason)
      assert.match(decision.message, says)
    })
  }
})

describe("an object for which the store created no run", () => {
  const refused = (why: NamedModelRefused["why"], conflict = "") => notAdopted(new NamedModelRefused({ why, conflict }), object({}, { modelId }), "acme")
  it("states the conflict, and reports a model of another organization as one that does not exist", () => {
    assert.deepInclude(notAdopted(new ModelNameTaken({ slug: "tiny" }), object(), "acme"), { reason: "NameTaken" })
    assert.strictEqual(refused("NotFound").reason, "ModelUnknown")
    assert.include(refused("NotFound").message, `The organization acme has no model ${modelId}`)
    assert.deepInclude(refused("OtherRepository", "a/b"), { reason: "Invalid" })
    assert.include(refused("OtherRepository", "a/b").message, "a/b")
    assert.strictEqual(refused("Applied", "team/other").reason, "ModelTaken")
    assert.include(refused("Applied", "team/other").message, "team/other")
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
