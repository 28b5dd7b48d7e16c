import { assert, describe, it } from "@effect/vitest"
import type { ObservedApplied } from "../../src/applied/decideApplied.ts"
import { desiredSpecHash, toDesiredSpec } from "../../src/applied/desiredSpec.ts"
import { replicasToRecord } from "../../src/applied/replicasToRecord.ts"
import { deploymentId, modelId, orgId } from "../observations.ts"

const source = { repo: "seatrial/tiny-chat" }
const scaling = { minReplicas: 1, maxReplicas: 4 }
const limits = { min_replicas: 1, max_replicas: 4, target: 0.8 }
const binding = {
  orgId,
  orgSlug: "acme",
  uid: "u1",
  generation: 1,
  specHash: "same",
  modelId,
  namesModel: false,
  repo: source.repo,
  modelDeleted: false,
  replicas: null,
  scaling: null,
  deploymentId,
  phase: "activated" as const
}
const observed: ObservedApplied = {
  namespace: "seatrial",
  resource: null,
  spec: { source, replicas: 3 },
  unreadable: null,
  organization: "acme",
  owner: null,
  binding,
  specHash: "same",
  problem: null,
  scalingProblem: null,
  requireFirstPurchase: false
}

describe("the number of engines that an object sets", () => {
  const cases: ReadonlyArray<readonly [what: string, change: Partial<ObservedApplied>, recorded: ReturnType<typeof replicasToRecord>]> = [
    ["is recorded", {}, { replicas: 3 }],
    ["is recorded once", { binding: { ...binding, replicas: 3 } }, undefined],
    ["is recorded again after a change", { binding: { ...binding, replicas: 2 } }, { replicas: 3 }],
    ["is recorded although the rest of the specification is refused", { problem: "no such class", specHash: "other" }, { replicas: 3 }],
    ["is no longer recorded if it was removed", { spec: { source }, binding: { ...binding, replicas: 2 } }, null],
    ["becomes limits for the autoscaler", { spec: { source, scaling }, binding: { ...binding, replicas: 2 } }, limits],
    ["is recorded once, if there are limits", { spec: { source, scaling }, binding: { ...binding, scaling: limits } }, undefined],
    ["is recorded again after a change of the limits", { spec: { source, scaling }, binding: { ...binding, scaling: { ...limits, target: 0.5 } } }, limits],
    ["is not recorded if it breaks a rule", { scalingProblem: "no such number" }, undefined],
    ["is not touched if the object never had one", { spec: { source } }, undefined],
    ["is ignored before the object has a run", { binding: null }, undefined],
    ["is ignored after the model was deleted", { binding: { ...binding, modelDeleted: true } }, undefined],
    ["does not scale the model of another organization", { organization: "globex" }, undefined],
    ["does not scale a model for an organization that the namespace is not mapped to", { spec: { source, replicas: 3, organization: "globex" } }, undefined],
    ["is ignored if the specification cannot be read", { spec: null }, undefined]
  ]
  for (const [what, change, recorded] of cases) it(what, () => assert.deepStrictEqual(replicasToRecord({ ...observed, ...change }), recorded))

  it("is no part of the hash, so it starts no run", () => {
    const hash = (replicas?: number) => desiredSpecHash(toDesiredSpec({ source, ...(replicas === undefined ? {} : { replicas }) }))
    assert.deepStrictEqual([hash(1), hash(64), desiredSpecHash(toDesiredSpec({ source, scaling }))], [hash(), hash(), hash()])
  })
})
