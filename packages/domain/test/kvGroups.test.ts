import { assert, describe, it } from "@effect/vitest"
import { llama8bConfig } from "../../../test/models/modelConfigs.ts"
import { type KvLayout, type LayerGroup, type ModelConfig, sequenceBytes } from "../src/index.ts"

const shape = { intermediate_size: null, experts: null, vision: null, tied_embeddings: false, softcapped_logits: false }
const withLayers = (...layers: ReadonlyArray<LayerGroup>): ModelConfig => ({ ...llama8bConfig, shape: { ...shape, layers } })
const layout: KvLayout = {
  gpuCount: 1,
  valueBytes: 2,
  stateValueBytes: 2,
  blockTokens: 16,
  stepTokens: 2_048,
  groupsLayers: true,
  latentAlignment: 1,
  statesPerSequence: 1
}
const heads = { kv_heads: 16, head_size: 128, head_size_v: 128 }
const page = 16 * 16 * 256 * 2
const full = (layers: number, more: Partial<typeof heads> = {}): LayerGroup => ({ kind: "full", layers, ...heads, ...more })
const sliding = (layers: number): LayerGroup => ({ kind: "sliding", layers, ...heads, window: 1_024 })
/** Blocks of a window of 1,024 tokens and a step of 2,048. */
const windowBlocks = Math.ceil(3_071 / 16) + 1

describe("layers in groups", () => {
  it("are padded to the smallest number of layers of a kind: 62 layers of Gemma 3 27B take 70 places", () => {
    const gemma = withLayers(full(10), sliding(52))
    assert.strictEqual(sequenceBytes(gemma, layout, 131_072), (10 * 8_192 + 60 * windowBlocks) * page)
    assert.strictEqual(sequenceBytes(gemma, { ...layout, groupsLayers: false }, 131_072), (10 * 8_192 + 52 * windowBlocks) * page)
  })

  it("are padded to the largest number of layers if it is less than 1.5 times the smallest", () => {
    assert.strictEqual(sequenceBytes(withLayers(full(12), sliding(17)), layout, 131_072), 17 * (8_192 + windowBlocks) * page)
    assert.strictEqual(sequenceBytes(withLayers(full(12), sliding(18)), layout, 131_072), 12 * (8_192 + 2 * windowBlocks) * page)
  })

  it("count layers with the same cache together, and are not padded if all layers keep the same tokens", () => {
    assert.strictEqual(
      sequenceBytes(withLayers(full(5), sliding(26), full(5), sliding(26)), layout, 131_072),
      sequenceBytes(withLayers(full(10), sliding(52)), layout, 131_072)
    )
    assert.strictEqual(sequenceBytes(withLayers(full(10), full(3, { kv_heads: 8 })), layout, 160), 10 * (10 * page + 3 * (page / 2)))
  })

  it("have blocks of equal bytes: longer blocks for smaller pages that divide the largest, otherwise padded pages", () => {
    const tokens = 160
    assert.strictEqual(sequenceBytes(withLayers(full(4, { kv_heads: 8 }), sliding(4)), layout, tokens), 4 * (5 + 11) * page)
    assert.strictEqual(sequenceBytes(withLayers(full(4, { kv_heads: 12 }), sliding(4)), layout, tokens), 4 * (10 + 11) * page)
  })

  it("hold a state in a block of the attention layers", () => {
    const state: LayerGroup = { kind: "state", layers: 27, conv_values: 0, state_values: page, state_float32: false }
    // A state is as large as two pages, so blocks have 32 tokens. 27 states take seven groups of four.
    assert.strictEqual(sequenceBytes(withLayers(full(4), state), layout, 64), 4 * (2 + 7) * 2 * page)
  })

  it("keep every token of windows if a latent next to them cannot be padded", () => {
    const latent: LayerGroup = { kind: "latent", layers: 6, latent_size: 576, index_bytes: 0, absorbed_values: 0 }
    assert.strictEqual(sequenceBytes(withLayers(latent, sliding(6)), layout, 131_072), 6 * 8_192 * (16 * 576 * 2 + page))
  })
})
