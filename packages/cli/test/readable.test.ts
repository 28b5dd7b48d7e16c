import { assert, describe, it } from "@effect/vitest"
import { Option, Redacted } from "effect"
import { basisOf } from "../src/admin/models.ts"
import { chooseAccess } from "../src/apiAccess.ts"
import { statusLine } from "../src/follow.ts"
import { parseTime } from "../src/listing.ts"
import { dollars, linesOf, readableRecord, size, tableOf } from "../src/readable.ts"

describe("money is shown exactly, in dollars", () => {
  const cases = [
    ["0", "$0.00"],
    ["1", "$0.000001"],
    ["1500000", "$1.50"],
    ["999999", "$0.999999"],
    ["123456789012345678901234", "$123456789012345678.901234"],
    ["2000000", "$2.00"],
    ["-536", "-$0.000536"],
    ["-1500000", "-$1.50"]
  ] as const
  for (const [micros, shown] of cases) it(`${micros} is ${shown}`, () => assert.strictEqual(dollars(micros), shown))
})

describe("bytes are shown in the largest unit that gives at least 1", () => {
  const cases = [
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [1_610_612_736, "1.50 GiB"],
    [2 ** 50, "1024.00 TiB"]
  ] as const
  for (const [bytes, shown] of cases) it(`${bytes} is ${shown}`, () => assert.strictEqual(size(bytes), shown))
})

describe("a record", () => {
  it("has nested parts aligned under their names, without JSON", () => {
    const record = readableRecord({
      object: "deployment",
      id: "dep_x",
      failure_detail: null,
      cost_micros: "1500000",
      weights_bytes: 1024,
      prices: { input_micros_per_mtok: "2500000" },
      overhead_bytes: { low: 1, high: 2048 },
      phases: [
        { status: "screening", at: "t0" },
        { status: "queued", at: "t1" }
      ],
      checks: [
        { name: "one", passed: true },
        { name: "another", passed: false, detail: "why" }
      ],
      empty: [],
      before: { list: [1, [2, 3]], nothing: {} }
    })
    assert.deepStrictEqual(linesOf(record), [
      "id              dep_x",
      "failure_detail  -",
      "cost            $1.50",
      "weights         1.00 KiB",
      "prices          input_per_mtok  $2.50",
      "overhead        low   1 B",
      "                high  2.00 KiB",
      "phases          screening  t0",
      "                queued     t1",
      "checks          one      yes",
      "                another  no   why",
      "empty           -",
      "before          list     1, 2, 3",
      "                nothing  -"
    ])
  })

  it("has a header above records with many members", () => {
    const [head, first] = linesOf({ rows: [{ a: 1, b: 2, c: 3, d: null }] })
    assert.strictEqual(head, "rows  A  B  C  D")
    assert.strictEqual(first, "      1  2  3  -")
  })
})

it("a table is as wide as its widest cells, without trailing spaces", () => {
  assert.deepStrictEqual(
    tableOf([
      { id: "a", made_of: { x: 1, y: [true, false] } },
      { id: "longer", made_of: null }
    ]),
    ["ID      MADE_OF", "a       x=1 y=yes, no", "longer  -"]
  )
})

describe("a time is", () => {
  const now = Date.parse("2026-02-01T00:00:00Z")
  const cases: ReadonlyArray<readonly [text: string, at: string | null]> = [
    ["90s", "2026-01-31T23:58:30.000Z"],
    ["15m", "2026-01-31T23:45:00.000Z"],
    ["2h", "2026-01-31T22:00:00.000Z"],
    ["7d", "2026-01-25T00:00:00.000Z"],
    ["2026-01-31", "2026-01-31T00:00:00.000Z"],
    ["2026-01-31T12:00Z", "2026-01-31T12:00:00.000Z"],
    ["2026-01-31T12:00:00.5+02:00", "2026-01-31T10:00:00.500Z"],
    ["2026-01-31T12:00:00", null],
    ["2026-13-31", null],
    ["yesterday", null],
    ["1w", null],
    ["-2h", null],
    ["", null]
  ]
  for (const [text, at] of cases) {
    it(`${at ?? "refused"} for "${text}"`, () =>
      assert.deepStrictEqual(
        parseTime(text, now),
        Option.map(Option.fromNullishOr(at), (time) => Date.parse(time))
      ))
  }
})

describe("the key of the system started in this folder", () => {
  const local = { address: "http://127.0.0.1:8080", api_key: "seatrial_local", kubeconfig: "", pid: process.pid }
  const access = (address: string | null, key: string | null) => {
    const explicit = { address: Option.fromNullishOr(address), key: Option.map(Option.fromNullishOr(key), (secret) => Redacted.make(secret)) }
    const chosen = chooseAccess(explicit, Option.some(local))
    return [Option.getOrNull(chosen.address), Option.getOrNull(Option.map(chosen.key, Redacted.value))]
  }
  it("is sent to that system", () => assert.deepStrictEqual(access(null, null), [local.address, local.api_key]))
  it("is sent to that system if its address is set", () => assert.deepStrictEqual(access(local.address, null), [local.address, local.api_key]))
  it("is not sent to any other address", () => assert.deepStrictEqual(access("https://elsewhere.example", null), ["https://elsewhere.example", null]))
  it("is not used if a key is set", () => assert.deepStrictEqual(access(null, "mine"), [local.address, "mine"]))
})

describe("the status line of a followed run", () => {
  const run = { phase: "checking", since: 10_000, started: 0, isServerAway: false, message: "" }
  it("contains the phase, the time in it and the total time", () =>
    assert.strictEqual(statusLine(run, 75_500, 80), "checking  1 min 05 s  (1 min 15 s in total)"))
  it("is narrower than the terminal, so that it stays on one line", () => assert.strictEqual(statusLine(run, 75_500, 21).length, 20))
  it("never shows negative times if the clocks differ", () => assert.strictEqual(statusLine(run, 9000, 80), "checking  0 s  (9 s in total)"))
  it("contains what the run is doing or waiting for, with control characters escaped", () =>
    assert.strictEqual(
      statusLine({ ...run, message: "Waits for 1 GPU: \u001b[2J2 runs go first." }, 75_500, 120),
      "checking  1 min 05 s  (1 min 15 s in total)  Waits for 1 GPU: \\u001b[2J2 runs go first."
    ))
  it("says that the server does not answer", () => assert.include(statusLine({ ...run, isServerAway: true }, 75_500, 120), "does not answer"))
})

it.each([
  ["earlier starts", { calibrated: true }, " (calibrated)"],
  ["arithmetic that was measured", { calibrated: false }, ""],
  ["arithmetic that was not", { calibrated: false, unmeasured: true }, " (by arithmetic that was compared with no measured start of the engine)"]
] as const)("an estimate by %s says so", (_, fit, expected) => assert.strictEqual(basisOf(fit), expected))
