import { assert, describe, it } from "@effect/vitest"
import { workingPhases } from "@seatrial/domain"
import { waitingAdvice } from "../src/waitingAdvice.ts"

describe("a run that waits", () => {
  it("is explained in the two phases that may last, and in no other", () =>
    assert.deepStrictEqual(
      workingPhases.filter((phase) => waitingAdvice(phase, "dep_x") !== undefined),
      ["waiting", "queued"]
    ))
  it("names what its owner and the cluster's operator can do", () => {
    const advice = waitingAdvice("queued", "dep_x") ?? ""
    for (const remedy of ["seatrial cancel dep_x", "--host-class", "add GPUs", "kubectl get mdep -o wide"]) assert.include(advice, remedy)
  })
})
