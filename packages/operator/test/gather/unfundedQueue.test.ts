import { assert, it } from "@effect/vitest"
import { makePool } from "../../src/gather/capacity/Pool.ts"
import { observationOf, otherDeployment, podClass } from "../observations.ts"

it("a queued run without funds delays no run of another organization, and the others are notified once", () => {
  const pool = makePool()
  const unfunded = observationOf("queued").run
  const other = { ...unfunded, id: otherDeployment, engineRun: otherDeployment, orgSlug: "beta", createdAt: 1 }
  const ahead = () => pool.view({ run: other, podClass, classes: [podClass], reservations: [] }).ahead
  const note = (isUnfunded: boolean) => pool.note(unfunded, "queued", false, { isUnfunded })
  assert.isFalse(note(false))
  assert.isFalse(pool.note(other, "queued"))
  const before = ahead()
  assert.deepStrictEqual([note(true), note(true)], [true, false])
  assert.deepStrictEqual([before, ahead()], [1, 0])
  assert.include(pool.queued(), other.id)
  note(false)
  assert.strictEqual(ahead(), 1)
})
