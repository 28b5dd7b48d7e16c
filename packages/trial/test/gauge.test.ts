import { assert, describe, it } from "@effect/vitest"
import { gauge, labelsOf } from "../src/gauge.ts"

describe("a figure of an engine's metrics", () => {
  const metrics = [
    "# HELP a:requests of all ranks",
    'a:requests{rank="0"} 3.0',
    'a:requests{rank="1"} 4e0',
    "a:requests_total 100",
    "a:plain 7",
    'a:tokens{mode="decode",rank="0"} 5',
    'a:tokens{mode="prefill",rank="0"} 900',
    "a:broken NaN",
    "a:cut{"
  ].join("\n")

  const rows: ReadonlyArray<readonly [name: string, label: string | null, expected: number | null]> = [
    ["a:requests", null, 7],
    ["a:requests", 'rank="1"', 4],
    ["a:plain", null, 7],
    ["a:tokens", 'mode="decode"', 5],
    ["a:tokens", 'mode="none"', null],
    ["a:broken", null, null],
    ["a:cut", null, null],
    ["a:missing", null, null]
  ]
  for (const [name, label, expected] of rows) {
    it(`${name} ${label ?? "of all series"} is ${expected}`, () => assert.strictEqual(gauge(metrics, [label === null ? { name } : { name, label }]), expected))
  }

  it("is the sum of several metrics", () => assert.strictEqual(gauge(metrics, [{ name: "a:plain" }, { name: "a:requests" }]), 14))
  it("has labels", () => assert.strictEqual(labelsOf(metrics, "a:tokens"), '{mode="decode",rank="0"}'))

  it("is read in time from hostile metrics", () => {
    const hostile = ["a:requests{\n", "a:requests{", 'a:requests{rank="1"', "a:requests "].map((part) => part.repeat(150_000))
    // Patterns that backtrack would take minutes.
    for (const text of hostile) assert.isNull(gauge(text, [{ name: "a:requests", label: 'rank="1"' }, { name: "a:requests" }]))
  })
})
