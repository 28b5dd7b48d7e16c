import { assert, it } from "@effect/vitest"
import { everyServingField } from "../../../../test/models/everyServingField.ts"
import { toDesiredSpec } from "../../src/applied/desiredSpec.ts"
import { toSpecServing } from "../../src/resources/ModelDeployment.ts"

it("an applied object carries each field of a request, and an object of a run shows it", () => {
  const source = { repo: "acme/tiny" }
  assert.deepStrictEqual(toDesiredSpec({ source, serving: toSpecServing(everyServingField) }).serving, everyServingField)
  for (const host_class of ["h100", "any"]) {
    assert.deepStrictEqual(toDesiredSpec({ source, serving: toSpecServing({ host_class }) }).serving, { host_class })
  }
})
