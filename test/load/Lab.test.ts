import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { inject } from "vitest"
import { makeLabs } from "./Lab.ts"
import { makeDeployments, makeRoute } from "./makeDeployments.ts"

it.live("benchmarks of one command do not see each other's rows, and those of requests share a database", () =>
  Effect.gen(function* () {
    const { own, requests } = yield* makeLabs(Redacted.make(`${inject("postgres")}/postgres`))
    /** The runs that an operator of the benchmark would see. */
    const bench = Effect.gen(function* () {
      const lab = yield* own
      yield* makeDeployments(lab, 2)
      yield* makeRoute(lab, { number: 1, urls: ["http://engine"] })
      return yield* lab.sql<{ readonly runs: number }>`SELECT count(*)::int AS runs FROM deployments`
    })
    assert.deepStrictEqual(yield* Effect.all([bench, bench]), [[{ runs: 3 }], [{ runs: 3 }]])
    const { lab, rows } = yield* Effect.scoped(requests)
    assert.strictEqual(rows, 1_000)
    assert.strictEqual((yield* Effect.scoped(requests)).lab, lab)
    const [made] = yield* lab.sql<{ readonly rows: number }>`SELECT count(*)::int AS rows FROM requests`
    assert.strictEqual(made?.rows, 1_000)
  }).pipe(Effect.scoped, Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { BENCH_REQUESTS: "1000" } }))))
)
