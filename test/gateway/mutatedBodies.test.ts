import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { holdBodies } from "../../packages/gateway/test/bodies/holdBodies.ts"

const count = Number(process.env.GATEWAY_BODIES ?? 5_000)
const seed = Number(process.env.GATEWAY_SEED ?? Math.floor(Math.random() * 2 ** 31))

it.live(
  `of ${count} mutated bodies that a gateway gets none ends in a fault, and its engine gets nothing that is not in the vocabulary (seed ${seed})`,
  () => Effect.map(holdBodies(seed, count), (reached) => assert.isAbove(reached, count / 20)),
  count * 20 + 60_000
)
