import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { disruptionBudget } from "../../src/objects/disruptionBudget.ts"
import { makeStage } from "./stage.ts"

const edits: ReadonlyArray<readonly [what: string, spec: (label: string) => object]> = [
  ["allows every eviction", () => ({ minAvailable: 0 })],
  ["has a percentage", () => ({ minAvailable: "100%" })],
  ["counts unavailable pods", () => ({ minAvailable: undefined, maxUnavailable: 1 })],
  ["protects a pod that is not ready", () => ({ unhealthyPodEvictionPolicy: "IfHealthyBudget" })],
  ["selects no pod", (label) => ({ selector: { matchLabels: { "seatrial.dev/deployment": label, "seatrial.dev/role": "engine", more: "x" } } })],
  ["selects by expressions", () => ({ selector: { matchExpressions: [{ key: "more", operator: "Exists" }] } })]
]

for (const [what, edit] of edits) {
  it.effect(`the disruption budget of an engine that serves is corrected if someone edits it so that it ${what}`, () => {
    const stage = makeStage()
    const { kube } = stage
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.mirrored()?.message === "Serves." && kube.names("PodDisruptionBudget").length === 1)
        const wanted = JSON.parse(JSON.stringify(disruptionBudget(stage.row(), "seatrial", 1)))
        const [name = ""] = kube.names("PodDisruptionBudget")
        const spec = () => Option.getOrThrow(kube.find("PodDisruptionBudget", name)).spec
        assert.deepStrictEqual(spec(), wanted.spec)
        const { metadata, ...object } = Option.getOrThrow(kube.find("PodDisruptionBudget", name))
        kube.add("PodDisruptionBudget", name, {
          ...object,
          metadata: { ...Object(metadata), generation: 2 },
          spec: JSON.parse(JSON.stringify({ ...Object(spec()), ...edit(stage.row().id) }))
        })
        yield* stage.until(() => JSON.stringify(Object.entries(Object(spec())).sort()) === JSON.stringify(Object.entries(Object(wanted.spec)).sort()))
      })
    )
  })
}
