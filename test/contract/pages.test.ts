import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Random } from "effect"
import { lists } from "./pages/lists.ts"
import { type Coverage, Plan, walkThrough } from "./pages/walkThrough.ts"
import { Stage } from "./Stage.ts"

/** Number of organizations to fill and page through for each list. */
const organizations = Number(process.env.CONTRACT_PAGES ?? 250)
const fixedSeed = process.env.CONTRACT_SEED

layer(Stage.layer(), { excludeTestServices: true, timeout: 300_000 })("two servers on one database", (it) => {
  for (const list of lists) {
    it.effect(`${list.paths.join(" and ")}: each page matches an in-memory oracle, even if records arrive between pages`, () =>
      Effect.gen(function* () {
        const seed = fixedSeed ?? String(yield* Random.nextIntBetween(0, 2 ** 31))
        process.stdout.write(`CONTRACT_SEED=${seed} CONTRACT_PAGES=${organizations} ${list.paths.join(" ")}\n`)
        const met: Coverage = { pages: 0, cutTies: 0, arrivedBefore: 0, arrivedAfter: 0, combinations: new Set() }
        const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Plan), (plan) => Effect.as(walkThrough(list, plan, met), true), {
          runs: organizations,
          seed,
          concurrency: 4,
          maxShrinks: 100
        })
        assert.isUndefined(Arbitrary.formatCheckFailure(result))
        process.stdout.write(`${met.pages} pages, ${met.cutTies} cut between equal times, ${met.arrivedBefore + met.arrivedAfter} arrivals\n`)
        // With fewer, the test would prove little.
        for (const count of [met.pages, met.cutTies, met.arrivedBefore, met.arrivedAfter]) assert.isAbove(count, organizations / 10)
        if (organizations >= 150) assert.strictEqual(met.combinations.size, list.paths.length * 2 ** list.filters.length)
      })
    )
  }
})
