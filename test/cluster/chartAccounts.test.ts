import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { render, renderText } from "./renderChart.ts"

const Subjects = Schema.Array(Schema.Struct({ kind: Schema.Literal("ServiceAccount"), name: Schema.String, namespace: Schema.Literal("seatrial") }))
const decodeSubjects = Schema.decodeUnknownSync(Subjects)

/** All that gives the operator rights or names it in a policy. */
const everything = { kueue: { enabled: true }, organizations: { namespaces: { "team-a": "acme" } } }

/** Every set of accounts that a release may have, and which account the operator then runs as. */
const accounts = [
  { serviceAccount: {}, runsAs: "seatrial-operator" },
  { serviceAccount: { name: "models" }, runsAs: "models" },
  { serviceAccount: { create: false, name: "yours" }, runsAs: "yours" }
]

describe("the operator's account", () => {
  for (const { runsAs, serviceAccount } of accounts)
    it(`is ${runsAs} in its Deployment, every binding and every policy, with ${JSON.stringify(serviceAccount)}`, () => {
      const values = { ...everything, operator: { countAllPods: true, serviceAccount } }
      const { kinds, read } = render(values)
      assert.strictEqual(read("Deployment/seatrial-operator", "spec", "template", "spec", "serviceAccountName"), runsAs)
      assert.strictEqual(kinds.includes(`ServiceAccount/${runsAs}`), serviceAccount.create !== false)
      const bindings = kinds.filter((object) => /^(Cluster)?RoleBinding\//u.test(object))
      assert.isAtLeast(bindings.length, 6)
      for (const binding of bindings)
        assert.deepStrictEqual(
          decodeSubjects(read(binding, "subjects")).map(({ name }) => name),
          [runsAs],
          binding
        )
      const named = [...renderText(values).matchAll(/system:serviceaccount:seatrial:([a-z-]+)/gu)].map(([, name]) => name)
      assert.deepStrictEqual(named, [runsAs, runsAs])
    })

  for (const program of ["server", "gateway"] as const)
    it(`is another one than the ${program}'s, which has no rights`, () => {
      const { kinds, read } = render({ ...everything, [program]: { serviceAccount: { name: "mine" } } })
      assert.strictEqual(read(`Deployment/seatrial-${program}`, "spec", "template", "spec", "serviceAccountName"), "mine")
      assert.include(kinds, "ServiceAccount/mine")
      for (const binding of kinds.filter((object) => /^(Cluster)?RoleBinding\//u.test(object)))
        assert.notInclude(
          decodeSubjects(read(binding, "subjects")).map(({ name }) => name),
          "mine"
        )
    })
})
