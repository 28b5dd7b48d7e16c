import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AdapterConfig } from "../src/adapterConfig.ts"
import { hashAdapter } from "../src/adapterHash.ts"

const config: AdapterConfig = {
  rank: 8,
  alpha: 16,
  rslora: false,
  rankPattern: { "9": 1, "10": 2 },
  alphaPattern: {},
  target: ["v_proj", "q_proj"],
  base: null,
  revision: null,
  layers: [],
  layersPattern: []
}
const hashOf = (of: AdapterConfig) => hashAdapter(of, [], () => Effect.die("nothing is read"))

describe("the hash of an adapter", () => {
  it.effect("ends with the canonical JSON of its scales for any names in its patterns", () =>
    Effect.gen(function* () {
      const text = '{"alpha_pattern":{},"lora_alpha":16,"r":8,"rank_pattern":{"10":2,"9":1},"target_modules":["q_proj","v_proj"],"use_rslora":false}'
      assert.strictEqual(yield* hashOf(config), createHash("sha256").update(text).digest("hex"))
    })
  )

  it.effect("is refused for an adapter whose names have no canonical form", () =>
    Effect.gen(function* () {
      const { reason } = yield* Effect.flip(hashOf({ ...config, rankPattern: { "\ud800": 1 } }))
      assert.match(reason, /a name that is not a string/)
    })
  )
})
