import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { budgetOf, type EngineSpeed, recordSuite, secondsByCheck } from "./suiteSeconds.ts"

const page = readFileSync(new URL("../../docs/explanation/trial.md", import.meta.url), "utf8")
/** Milliseconds that the test may take on a busy machine. */
const longest = 3_600_000

const numberIn = (cell: string | undefined): number => Number(cell?.replaceAll(",", "").match(/\d+/u)?.[0])

/** The rows of the table, each with the speed of an engine and the seconds that the page names. */
const rows = (page.split("\n| Time per token |")[1]?.split("\n\n")[0] ?? "").split("\n").flatMap((line) => {
  const [tokenMillis, promptTokensPerSecond, context, total, budget] = line.split("|").slice(1, -1).map(numberIn)
  if (tokenMillis === undefined || promptTokensPerSecond === undefined || context === undefined || Number.isNaN(tokenMillis)) return []
  return [{ speed: { tokenMillis, promptTokensPerSecond, context } satisfies EngineSpeed, total, budget }]
})

/** The longest checks in the first row, and their seconds. */
const slowest = [...(page.match(/\nThe longest checks at \d+ ms: ([^.]*)/u)?.[1] ?? "").matchAll(/`([a-z_]+)` (\d+) s/gu)]

/** A request that begins with another one may also begin after it, so the figures vary. */
const tolerance = 0.05
const isNear = (documented: number | undefined, computed: number): boolean => Math.abs((documented ?? Number.NaN) - computed) <= tolerance * computed + 1

it.live(
  "the time of the suite for a large model is calculated as the page says",
  () =>
    Effect.gen(function* () {
      const { report, requests } = yield* recordSuite()
      assert.deepStrictEqual(
        report.outcomes.filter(({ outcome }) => outcome === "not_reached"),
        [],
        "this machine is too slow for the suite"
      )
      assert.isAtLeast(rows.length, 2)
      for (const { budget, speed, total } of rows) {
        const seconds = secondsByCheck(requests, speed)
        const sum = [...seconds.values()].reduce((all, each) => all + each, 0)
        assert.isTrue(isNear(total, sum), `${speed.tokenMillis} ms: the page says ${total} s, calculated are ${sum.toFixed(0)} s`)
        assert.strictEqual(budget, budgetOf(speed))
        assert.isBelow(sum, budgetOf(speed), "no capability is withdrawn for its time")
      }
      const [first] = rows
      const seconds = first === undefined ? assert.fail("the table has no row") : secondsByCheck(requests, first.speed)
      assert.isAtLeast(slowest.length, 4)
      for (const [, name = "", documented] of slowest) {
        const calculated = seconds.get(name) ?? assert.fail(name)
        assert.isTrue(isNear(Number(documented), calculated), `${name}: the page says ${documented} s, calculated are ${calculated.toFixed(1)} s`)
      }
      const names = new Set(slowest.map(([, name]) => name))
      const least = Math.min(...slowest.map(([, , documented]) => Number(documented)))
      for (const [name, each] of seconds) if (!names.has(name)) assert.isTrue(each < least || isNear(least, each), `${name} takes ${each.toFixed(1)} s`)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)),
  longest
)
