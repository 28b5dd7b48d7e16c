import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { floatFormats } from "../../src/fidelity/floatFormats.ts"
import { mergedAgreement, mergeWeights } from "../../src/fidelity/mergeWeights.ts"

const formatOf = (name: string) => floatFormats.get(name) ?? assert.fail(name)

interface Values {
  readonly name: string
  readonly dtype: "BF16" | "F16" | "F32"
  readonly shape: readonly [rows: number, columns: number]
  readonly values: ReadonlyArray<number>
}

/** A file in safetensors, written without the code under test but for the numbers. */
const fileOf = (tensors: ReadonlyArray<Values>): Buffer => {
  let at = 0
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } }
  const parts = tensors.map(({ dtype, name, shape, values }) => {
    const format = formatOf(dtype)
    const bytes = Buffer.alloc(values.length * format.bytes)
    values.forEach((value, index) => {
      bytes.writeUIntLE(format.encode(value), index * format.bytes, format.bytes)
    })
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] }
    at += bytes.length
    return bytes
  })
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([length, text, ...parts])
}

const inFolders = <A, E>(use: (make: (name: string, files: Readonly<Record<string, Uint8Array | string>>) => string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "merge-"))),
    (root) =>
      use((name, files) => {
        const folder = join(root, name)
        mkdirSync(folder)
        for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content)
        return folder
      }),
    (root) => Effect.sync(() => rmSync(root, { recursive: true }))
  )

const base: ReadonlyArray<Values> = [
  { name: "norm.weight", dtype: "BF16", shape: [1, 4], values: [1, 1, 1, 1] },
  { name: "layers.0.q_proj.weight", dtype: "BF16", shape: [2, 3], values: [1, 2, 3, -1, 0.5, 0] }
]
const pair = (rank: number): ReadonlyArray<Values> => [
  { name: "base_model.model.layers.0.q_proj.lora_A.weight", dtype: "F32", shape: [rank, 3], values: [1, 0, 2, 0, 1, 1].slice(0, rank * 3) },
  { name: "base_model.model.layers.0.q_proj.lora_B.weight", dtype: "F32", shape: [2, rank], values: rank === 1 ? [1, -1] : [1, 0, 0, 4] }
]
const config = (over: object = {}) => JSON.stringify({ r: 2, lora_alpha: 4, target_modules: ["q_proj"], ...over })

/** The values of the adapted weight in a merged folder. */
const read = (folder: string): ReadonlyArray<number> => {
  const bytes = readFileSync(join(folder, "model.safetensors"))
  return Array.from({ length: 6 }, (_, index) => formatOf("BF16").decode(bytes.readUInt16LE(bytes.length - 12 + index * 2)))
}

describe("merging an adapter", () => {
  // W + s B A by hand: B A = [1 0 2; 0 4 4] for the rank 2, [1 0 2; -1 0 -2] for the rank 1.
  const cases: ReadonlyArray<readonly [why: string, rank: number, config: string, merged: ReadonlyArray<number>]> = [
    ["the scale is alpha / r", 2, config(), [3, 2, 7, -1, 8.5, 8]],
    ["the scale is alpha / sqrt(r) with rslora", 1, config({ r: 1, use_rslora: true }), [5, 2, 11, -5, 0.5, -8]],
    ["a module may have its own alpha", 2, config({ alpha_pattern: { q_proj: 1 } }), [1.5, 2, 4, -1, 2.5, 2]],
    ["a module may have its own rank", 1, config({ rank_pattern: { "layers.0.q_proj": 1 } }), [5, 2, 11, -5, 0.5, -8]]
  ]
  for (const [why, rank, said, expected] of cases) {
    it.effect(`gives the result computed by hand: ${why}`, () =>
      inFolders((make) =>
        Effect.gen(function* () {
          const folders = {
            base: make("base", { "model.safetensors": fileOf(base) }),
            adapter: make("adapter", { "adapter_config.json": said, "adapter_model.safetensors": fileOf(pair(rank)) }),
            target: join(make("around", {}), "target")
          }
          yield* mergeWeights(folders)
          assert.match((yield* Effect.flip(mergeWeights(folders))).message, /already exists/)
          assert.deepStrictEqual(read(folders.target), expected)
          assert.deepStrictEqual(yield* mergedAgreement({ ...folders, child: folders.target }), { withinUlpMin: 1, othersEqual: true })
        })
      )
    )
  }

  it.effect("into a single-precision base is right to the last place: a hundredth of the weights' size, rank 16", () =>
    inFolders((make) =>
      Effect.gen(function* () {
        const size = 256
        let state = 1
        const numbers = (count: number, scale: number) =>
          Array.from({ length: count }, () => {
            state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
            return (state / 2 ** 31 - 1) * scale
          })
        const name = "layers.0.q_proj"
        const folders = {
          base: make("base", { "model.safetensors": fileOf([{ name: `${name}.weight`, dtype: "F32", shape: [size, size], values: numbers(size * size, 1) }]) }),
          adapter: make("adapter", {
            "adapter_config.json": config({ r: 16, lora_alpha: 16 }),
            "adapter_model.safetensors": fileOf([
              { name: `base_model.model.${name}.lora_A.weight`, dtype: "F32", shape: [16, size], values: numbers(16 * size, 0.1) },
              { name: `base_model.model.${name}.lora_B.weight`, dtype: "F32", shape: [size, 16], values: numbers(16 * size, 0.1) }
            ])
          }),
          target: join(make("around", {}), "target")
        }
        yield* mergeWeights(folders)
        assert.strictEqual((yield* mergedAgreement({ ...folders, child: folders.target })).withinUlpMin, 1)
      })
    )
  )

  it.effect("is distinguished from another adapter and another base", () =>
    inFolders((make) =>
      Effect.gen(function* () {
        const adapter = make("adapter", { "adapter_config.json": config(), "adapter_model.safetensors": fileOf(pair(2)) })
        const own = make("base", { "model.safetensors": fileOf(base) })
        const child = join(make("around", {}), "child")
        yield* mergeWeights({ base: own, adapter, target: child })
        const otherNorm = base.map((tensor) => (tensor.name.includes("norm") ? { ...tensor, values: [1, 1, 1, 2] } : tensor))
        const wrong = yield* Effect.all({
          unmerged: mergedAgreement({ base: own, adapter, child: own }),
          scaled: mergedAgreement({
            base: own,
            adapter: make("half", { "adapter_config.json": config({ lora_alpha: 2 }), "adapter_model.safetensors": fileOf(pair(2)) }),
            child
          }),
          elsewhere: mergedAgreement({ base: make("other", { "model.safetensors": fileOf(otherNorm) }), adapter, child })
        })
        assert.isBelow(wrong.unmerged.withinUlpMin, 0.5)
        assert.isBelow(wrong.scaled.withinUlpMin, 0.5)
        assert.deepStrictEqual(wrong.elsewhere, { withinUlpMin: 1, othersEqual: false })
      })
    )
  )

  it.effect("is refused if the adapter does not fit the weights, with a reason that shows no path", () =>
    inFolders((make) =>
      Effect.gen(function* () {
        const own = make("base", { "model.safetensors": fileOf(base) })
        const stray = pair(2).map((tensor) => ({ ...tensor, name: tensor.name.replace("layers.0", "layers.7") }))
        const wrong: ReadonlyArray<readonly [files: Readonly<Record<string, Uint8Array | string>>, says: RegExp]> = [
          [{ "adapter_config.json": config(), "adapter_model.safetensors": fileOf(stray) }, /layers\.7\.q_proj.* does not have/],
          [{ "adapter_config.json": config({ r: 1 }), "adapter_model.safetensors": fileOf(pair(2)) }, /does not have the stated rank/],
          [{ "adapter_config.json": config({ alpha_pattern: { "(a+)+": 1 } }), "adapter_model.safetensors": fileOf(pair(2)) }, /expressions/],
          [{ "adapter_config.json": config(), "adapter_model.safetensors": fileOf(base) }, /belongs to no LoRA pair/],
          [{ "adapter_config.json": config(), "adapter_model.safetensors": "nothing" }, /is not a safetensors file/],
          [{ "adapter_model.safetensors": fileOf(pair(2)) }, /adapter_config/]
        ]
        for (const [index, [files, says]] of wrong.entries()) {
          const failure = yield* Effect.flip(mergeWeights({ base: own, adapter: make(`adapter${index}`, files), target: join(own, "..", `target${index}`) }))
          assert.match(failure.message, says)
          assert.notInclude(failure.message, tmpdir())
        }
      })
    )
  )
})

describe("weight formats", () => {
  it("decode known values", () => {
    const known: ReadonlyArray<readonly [dtype: string, value: number, bits: number]> = [
      ["BF16", 1, 0x3f80],
      ["BF16", -2, 0xc000],
      // Halfway between 1 and the next value: to the even one, and above it up.
      ["BF16", 1 + 2 ** -8, 0x3f80],
      ["BF16", 1 + 3 * 2 ** -8, 0x3f82],
      ["BF16", 1 + 2 ** -8 + 2 ** -16, 0x3f81],
      ["F16", 1, 0x3c00],
      ["F16", 65_504, 0x7bff],
      ["F16", 65_520, 0x7c00],
      ["F16", 2 ** -24, 1],
      ["F16", 2 ** -14, 0x400],
      ["F16", 1 + 2 ** -11, 0x3c00],
      ["F16", 1 + 3 * 2 ** -11, 0x3c02],
      ["F16", 2 - 2 ** -12, 0x4000],
      ["F32", 1, 0x3f800000]
    ]
    for (const [dtype, value, bits] of known) assert.strictEqual(formatOf(dtype).encode(value), bits, `${dtype} ${value}`)
  })

  const Word = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff }))
  for (const dtype of ["BF16", "F16"]) {
    it.prop(`${dtype}: every value rounds to itself, and neighbors differ by one`, [Word], ([bits]) => {
      const { decode, encode, order } = formatOf(dtype)
      const value = decode(bits)
      if (!Number.isFinite(value)) return true
      if (value !== 0) assert.strictEqual(encode(value), bits)
      const next = bits < 0x8000 ? bits + 1 : bits - 1
      const other = decode(next)
      if (!Number.isFinite(other) || bits === 0x8000) return true
      assert.strictEqual(order(next) - order(bits), 1)
      assert.isAbove(other, value)
      // What lies nearer to one of two neighbours becomes that one.
      assert.strictEqual(decode(encode(value + (other - value) * 0.49)), value)
      assert.strictEqual(decode(encode(value + (other - value) * 0.51)), other)
      return true
    })
  }
})
