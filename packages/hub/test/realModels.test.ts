import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { kvBytesPerToken } from "@seatrial/domain"
import { Result, Schema } from "effect"
import { parseModelConfig } from "../src/modelConfig.ts"
import { countParameters, dominantType } from "../src/parameters.ts"
import { scanHeader } from "../src/safetensors.ts"
import { weightParts } from "../src/weightParts.ts"
import { weightsAgree } from "../src/weightsAgree.ts"
import { feed } from "./feed.ts"

/**
 * Public models: their configurations from the given source; the tensors of their architecture (name with `#` for the
 * layer and `@` for the expert, type, shape, layers from and to, experts); and the expected figures with their
 * arithmetic. `published`: figures of a source for the same checkpoint.
 */
const Row = Schema.Struct({
  model: Schema.String,
  source: Schema.String,
  arithmetic: Schema.Struct({ parameters: Schema.String, weights_bytes: Schema.String, kv_bytes_per_token: Schema.String }),
  expected: Schema.Struct({ parameters: Schema.Int, weights_bytes: Schema.Int, kv_bytes_per_token: Schema.Int }),
  /** `file_bytes`: of the only weight file, including its header. */
  published: Schema.optionalKey(
    Schema.Struct({ bytes: Schema.optionalKey(Schema.Int), parameters: Schema.optionalKey(Schema.Int), file_bytes: Schema.optionalKey(Schema.Int) })
  ),
  config: Schema.Record(Schema.String, Schema.Unknown),
  tensors: Schema.Array(
    Schema.Union([
      Schema.Tuple([Schema.String, Schema.String, Schema.Array(Schema.Int), Schema.Tuple([Schema.Int, Schema.Int])]),
      Schema.Tuple([Schema.String, Schema.String, Schema.Array(Schema.Int), Schema.Tuple([Schema.Int, Schema.Int]), Schema.Int])
    ])
  )
})
const rows = Schema.decodeUnknownSync(Schema.Array(Row))(JSON.parse(readFileSync(join(import.meta.dirname, "realModels.json"), "utf8")))

const bytesOf: Readonly<Record<string, number>> = { F32: 4, BF16: 2, F16: 2, F8_E4M3: 1, I8: 1, U8: 1, I32: 4 }

/** The header of one safetensors file with all tensors of a model, one after the other. */
const headerOf = ({ tensors }: typeof Row.Type) => {
  const entries: Array<string> = []
  let end = 0
  for (const [name, dtype, shape, [from, to], experts = 1] of tensors) {
    const length = shape.reduce((product, side) => product * side, bytesOf[dtype] ?? Number.NaN)
    for (let layer = from; layer < to; layer++)
      for (let expert = 0; expert < experts; expert++) {
        const full = name.replace("#", String(layer)).replace("@", String(expert))
        entries.push(`${JSON.stringify(full)}:${JSON.stringify({ dtype, shape, data_offsets: [end, end + length] })}`)
        end += length
      }
  }
  return { header: new TextEncoder().encode(`{${entries.join(",")}}`), bytes: end }
}

describe("public models", () => {
  it("are more than forty, with every kind of layer", () => {
    assert.isAtLeast(rows.length, 40)
    const kinds = new Set(rows.flatMap(({ config }) => Result.getOrThrow(parseModelConfig(config, "BF16")).shape?.layers.map(({ kind }) => kind) ?? []))
    assert.deepStrictEqual([...kinds].sort(), ["chunked", "full", "latent", "sliding", "state"])
  })

  for (const row of rows) {
    it(`${row.model}: weights, parameters and KV cache to the byte`, () => {
      const { bytes, header } = headerOf(row)
      const { groups } = Result.getOrThrow(feed(scanHeader(bytes, "model.safetensors"), header))
      const list = [...groups.values()]
      const config = Result.getOrThrow(parseModelConfig(row.config, dominantType(list)))
      const { expected, published } = row
      assert.isUndefined(Result.getOrThrow(weightsAgree(config, row.config, list, list)))
      assert.strictEqual(groups.bytes, expected.weights_bytes, row.arithmetic.weights_bytes)
      assert.strictEqual(Result.getOrThrow(countParameters(list, row.config)), expected.parameters, row.arithmetic.parameters)
      assert.strictEqual(
        kvBytesPerToken(config, { gpuCount: 1, valueBytes: 2, latentAlignment: 1 }),
        expected.kv_bytes_per_token,
        row.arithmetic.kv_bytes_per_token
      )
      if (published?.bytes !== undefined) assert.strictEqual(groups.bytes, published.bytes)
      // The file size minus the tensors is the header: names, types, shapes and offsets.
      if (published?.file_bytes !== undefined) assert.closeTo((published.file_bytes - 8 - groups.bytes) / groups.count, 120, 20)
      if (published?.parameters !== undefined) assert.strictEqual(expected.parameters, published.parameters)
      const { embeddings, experts, key_value, replicated, towers, unloaded } = weightParts(list, config)
      assert.isAtMost(embeddings + experts + key_value + replicated + towers + unloaded, groups.bytes)
      assert.strictEqual(towers > 0, config.shape?.vision !== null && config.shape?.vision !== undefined)
      assert.strictEqual(experts > 0, config.shape?.experts !== null && config.shape?.experts !== undefined)
      assert.isAbove(embeddings, 0)
    })
  }

  it("with vision state the size of their largest image and its number of tokens", () => {
    const sizes = rows.flatMap(({ config, model }) => {
      const vision = Result.getOrThrow(parseModelConfig(config, "BF16")).shape?.vision
      return vision == null ? [] : [[model, vision.patches, vision.image_tokens] as const]
    })
    for (const expected of [
      // 1,540 pixels in patches of 14, two by two.
      ["mistralai/Mistral-Small-3.1-24B-Instruct-2503", 12_100, 3_025],
      // Any size.
      ["allenai/olmOCR-7B (Qwen2-VL-7B)", 65_536, 16_384]
    ] as const) {
      assert.deepInclude(sizes, expected)
    }
    // 896 pixels in patches of 14, with a separately stated number of tokens.
    assert.isTrue(sizes.some(([, patches, tokens]) => patches === 4_096 && tokens === 256))
  })
})
