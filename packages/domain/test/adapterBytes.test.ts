import { assert, describe, it } from "@effect/vitest"
import { llama8bConfig, llama8bShape } from "../../../test/models/modelConfigs.ts"
import { adapterBytes } from "../src/adapterBytes.ts"
import type { AdapterBuffers } from "../src/engineContract.ts"
import type { ModelConfig } from "../src/repository.ts"

const config: ModelConfig = { ...llama8bConfig, shape: llama8bShape }
const all: AdapterBuffers = { slots: 1, rank: 16, modules: "all", embeddings: false, graphs: 0 }
const bytesOf = (buffers: AdapterBuffers | undefined, gpus = 1, model: ModelConfig = config) =>
  adapterBytes({ config: model, buffers, gpus, stepTokens: 8_192, graphs: { low: 0, high: 1_000_000 } })

describe("the memory of LoRA adapters", () => {
  it("is zero without adapters", () => assert.deepStrictEqual(bytesOf(undefined), { low: 0, high: 0 }))

  it("holds each module's pair in 16 bits, divided as the engine divides the module", () => {
    // Per layer: q, k and v with an A each; o; gate and up with an A each; down.
    const replicated = 3 * 4_096 + 4_096 + 2 * 4_096 + 4_096
    const divided = 4_096 + 2 * 1_024 + 4_096 + 2 * 14_336 + 14_336
    for (const gpus of [1, 2, 8]) assert.strictEqual(bytesOf(all, gpus).low, 2 * 16 * 32 * (replicated + divided / gpus))
    // Key-value heads are replicated if there are fewer than GPUs.
    assert.strictEqual(bytesOf(all, 16).low, 2 * 16 * 32 * (replicated + (divided + 2 * 1_024) / 16))
    assert.strictEqual(bytesOf({ ...all, slots: 2, rank: 64 }).low, 8 * bytesOf(all).low)
  })

  it("holds only the modules in the buffers", () => {
    assert.strictEqual(bytesOf({ ...all, modules: ["o_proj"] }).low, 2 * 16 * 32 * (4_096 + 4_096))
    assert.strictEqual(bytesOf({ ...all, modules: ["q_proj", "v_proj"] }).low, 2 * 16 * 32 * (3 * 4_096 + 4_096 + 2 * 1_024))
  })

  it("holds every expert of a mixture, and includes embeddings, kernels and graphs in the upper bound", () => {
    const experts = { count: 64, active: 6, intermediate_size: 1_408 }
    const mixture = { ...config, shape: { ...llama8bShape, experts } }
    const each = 2 * 4_096 + 2 * 1_408 + 1_408 + 4_096
    assert.strictEqual(bytesOf(all, 1, mixture).low - bytesOf({ ...all, modules: ["q_proj", "o_proj"] }, 1, mixture).low, 2 * 16 * 32 * 64 * each)
    const [plain, more] = [bytesOf(all), bytesOf({ ...all, embeddings: true, graphs: 1 })]
    assert.strictEqual(more.low, plain.low)
    assert.approximately(more.high - plain.high, 1.05 * 2 * 16 * 2 * (128_256 + 4_096) + 1_000_000, 2)
    assert.isAbove(plain.high, plain.low + 64 * 2 ** 20)
  })
})
