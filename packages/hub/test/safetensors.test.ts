import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { headerLength, scanHeader } from "../src/safetensors.ts"
import { scanIndex } from "../src/weightIndex.ts"
import { feed } from "./feed.ts"

const tensors = {
  "model.embed_tokens.weight": { dtype: "BF16", shape: [8, 4], data_offsets: [0, 64] },
  "model.norm.weight": { dtype: "F32", shape: [4], data_offsets: [64, 80] },
  packed: { dtype: "F4", shape: [2, 8], data_offsets: [80, 88] },
  scalar: { dtype: "I64", shape: [], data_offsets: [88, 96] },
  nothing: { dtype: "F16", shape: [0, 3], data_offsets: [96, 96] }
}
const encode = (value: unknown) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))
const dataBytes = 96
const encoded = encode({ __metadata__: { format: "pt" }, ...tensors })

const Byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const Place = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))

describe("a safetensors header", () => {
  it("lists its tensors in any order, including types below one byte and empty tensors", () => {
    const { groups, names } = Result.getOrThrow(feed(scanHeader(dataBytes, "a"), encoded))
    assert.deepStrictEqual([...groups.values()].map(({ name }) => name).sort(), Object.keys(tensors).sort())
    assert.strictEqual(names.length, 5)
    assert.strictEqual(groups.bytes, dataBytes)
    const reversed = encode(Object.fromEntries(Object.entries(tensors).reverse()))
    assert.isTrue(Result.isSuccess(feed(scanHeader(dataBytes, "a"), reversed)))
  })

  it("groups the tensors of a layer's experts, and separates layers and shapes", () => {
    const at = (index: number) => ({ dtype: "U8", shape: [1], data_offsets: [index, index + 1] })
    const header = encode({ "l.0.e.0.w": at(0), "l.0.e.1.w": at(1), "l.1.e.0.w": at(2), "l.1.e.1.w": { dtype: "I8", shape: [1, 1], data_offsets: [3, 4] } })
    const { groups } = Result.getOrThrow(feed(scanHeader(4, "a"), header))
    assert.deepStrictEqual(
      [...groups.values()].map(({ bytes, count, name }) => [name, count, bytes]),
      [
        ["l.0.e.0.w", 2, 2],
        ["l.1.e.0.w", 1, 1],
        ["l.1.e.1.w", 1, 1]
      ]
    )
  })

  it.prop(
    "is read the same in pieces of any size",
    { pieces: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }))).check(Schema.isMaxLength(200)) },
    ({ pieces }) => {
      assert.deepStrictEqual(
        [...Result.getOrThrow(feed(scanHeader(dataBytes, "a"), encoded, pieces)).groups.values()],
        [...Result.getOrThrow(feed(scanHeader(dataBytes, "a"), encoded)).groups.values()]
      )
    }
  )

  it.prop("states a length within the file, or is refused", { first: Schema.Array(Byte).check(Schema.isMaxLength(12)), size: Place }, ({ first, size }) => {
    const length = headerLength(Uint8Array.from(first), size, "model.safetensors")
    if (Result.isSuccess(length)) assert.isAtMost(length.success + 8, size)
  })

  it.each([
    ["data after the last tensor", [0, 2], 3, "model.safetensors has more data than its tensors need."],
    ["an end within a tensor", [0, 2], 1, "model.safetensors ends before the end of the tensor a."],
    ["offsets that contradict the shape", [0, 3], 3, "model.safetensors has data offsets for the tensor a that do not match its type and shape."]
  ])("names the cause of a refusal: %s", (_, offsets, size, reason) => {
    const result = feed(scanHeader(size, "model.safetensors"), encode({ a: { dtype: "U8", shape: [2], data_offsets: offsets } }))
    assert.strictEqual(Result.isFailure(result) ? result.failure.reason : null, reason)
  })

  it.each([
    ["two shapes of one tensor", '{"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}'],
    ["a list", "[]"],
    ["a text", '"a"'],
    ["a byte order mark", "\ufeff{}"],
    ["nothing after a comma", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},}'],
    ["a second object", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}{}'],
    ["an unknown type", { a: { dtype: "F128", shape: [1], data_offsets: [0, 1] } }],
    ["a negative side", { a: { dtype: "U8", shape: [-1], data_offsets: [0, 1] } }],
    ["a side that is not an integer", { a: { dtype: "U8", shape: [0.5], data_offsets: [0, 1] } }],
    ["a side in a form that no engine reads", '{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}'],
    ["a shape of lists", { a: { dtype: "U8", shape: [[1]], data_offsets: [0, 1] } }],
    ["decreasing offsets", { a: { dtype: "U8", shape: [1], data_offsets: [1, 0] } }],
    ["three offsets", { a: { dtype: "U8", shape: [1], data_offsets: [0, 1, 1] } }],
    ["sides whose product overflows", { a: { dtype: "U8", shape: [2 ** 40, 2 ** 40], data_offsets: [0, 1] } }],
    ["metadata that is not a string", { __metadata__: { a: 1 }, a: { dtype: "U8", shape: [1], data_offsets: [0, 1] } }],
    ["duplicate metadata", '{"__metadata__":{},"__metadata__":{},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'],
    ["a name that is not a string", { "a\nb": { dtype: "U8", shape: [1], data_offsets: [0, 1] } }],
    ["a name that addresses the prototype", '{"__proto__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}']
  ])("is refused with %s", (_, header) => {
    assert.isTrue(Result.isFailure(feed(scanHeader(1, "a"), encode(header))))
  })

  it("is refused unread if it states more than 16 MiB", () => {
    const first = new Uint8Array(8)
    new DataView(first.buffer).setBigUint64(0, 17n * 1024n * 1024n, true)
    assert.isTrue(Result.isFailure(headerLength(first, 2 ** 40, "a")))
  })
})

describe("an index", () => {
  const listed = new Set(["x.safetensors", "y.safetensors"])

  it("places each tensor in a listed file", () => {
    const index = Result.getOrThrow(
      feed(scanIndex("index", listed), encode({ metadata: { total_size: 1 }, weight_map: { "a.0": "x.safetensors", "a.1": "x.safetensors" } }))
    )
    assert.deepStrictEqual(
      [...index.files].map(([path, { nameBytes, tensors }]) => [path, tensors, nameBytes]),
      [["x.safetensors", 2, 6]]
    )
  })

  it.each([
    [{ weight_map: { a: "z.safetensors" } }],
    [{ weight_map: { a: "../x.safetensors" } }],
    [{ weight_map: {} }],
    [{ weight_map: { a: 1 } }],
    [{ weight_map: { a: {} } }],
    [{ weight_map: [] }],
    ['{"weight_map":{"a":"x.safetensors","a":"x.safetensors"}}'],
    ['{"weight_map":{"a":"x.safetensors"},"weight_map":{"b":"x.safetensors"}}'],
    [{}],
    ["["]
  ])("is refused as %j", (index) => {
    assert.isTrue(Result.isFailure(feed(scanIndex("index", listed), encode(index))))
  })
})
