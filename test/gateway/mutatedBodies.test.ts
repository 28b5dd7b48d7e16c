import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { holdBodies } from "../../packages/gateway/test/bodies/holdBodies.ts"

const count = Number(process.env.GATEWAY_BODIES ?? 5_000)
const seed = Number(process.env.GATEWAY_SEED ?? Math.floor(Math.random() * 2 ** 31))

it.live(
  `none of ${count} mutated bodies causes an internal error, and the engine gets nothing outside of the vocabulary (seed ${seed})`,
  () => Effect.map(holdBodies(seed, count), (reached) => assert.isAbove(reached, count / 20)),
  count * 20 + 60_000
)
