import { assert, describe, it } from "@effect/vitest"
import { workingPhases } from "@seatrial/domain"
import { Schema } from "effect"
import { escapeUnsafe, PlainText, safeJson } from "../src/plainText.ts"
import { linesOf, tableOf } from "../src/readable.ts"
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

describe("what a terminal would obey", () => {
  const evil = "a\u001b[31mred\u202eb\u0085"
  const shown = "a\\u001b[31mred\\u202eb\\u0085"
  it("is written out in tables, records and JSON, which keeps its meaning", () => {
    assert.deepStrictEqual(tableOf([{ name: evil }]), ["NAME", shown])
    assert.deepStrictEqual(linesOf({ name: evil, [evil]: { [evil]: [evil] } }), [
      `name${" ".repeat(shown.length - 4)}  ${shown}`,
      `${shown}  ${shown}  ${shown}`
    ])
    assert.strictEqual(escapeUnsafe(safeJson({ name: evil }).replaceAll("\n", "")), safeJson({ name: evil }).replaceAll("\n", ""))
    assert.deepStrictEqual(JSON.parse(safeJson({ name: evil })), { name: evil })
  })
  it("is refused in a name, as are blanks alone", () => {
    assert.deepStrictEqual([evil, "two\nlines", " ", "", "Zoë 東京"].map(Schema.is(PlainText)), [false, false, false, false, true])
  })
})
