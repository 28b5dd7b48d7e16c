import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { headerLength, joinShards, parseHeader, parseIndex, tensorBytes } from "../src/safetensors.ts"

const tensors = {
  "model.embed_tokens.weight": { dtype: "BF16", shape: [8, 4], data_offsets: [0, 64] },
  "model.norm.weight": { dtype: "F32", shape: [4], data_offsets: [64, 80] },
  packed: { dtype: "F4", shape: [2, 8], data_offsets: [80, 88] },
  scalar: { dtype: "I64", shape: [], data_offsets: [88, 96] },
  nothing: { dtype: "F16", shape: [0, 3], data_offsets: [96, 96] }
}
const encode = (value: unknown) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))
const dataBytes = 96
const whole = encode({ __metadata__: { format: "pt" }, ...tensors })

const Byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const Place = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))
const interesting = ["0", "-1", "1e9", "18446744073709551616", "NaN", "null", "[]", "{}", '"', ",", "__proto__", "data_offsets", "\u0000", "[[[[[[", "}"]

describe("a safetensors header", () => {
  it("tells its tensors, whatever their order, with types of less than a byte and tensors of no length", () => {
    const parsed = Result.getOrThrow(parseHeader(whole, dataBytes, "a"))
    assert.deepStrictEqual([...parsed.keys()].sort(), Object.keys(tensors).sort())
    assert.strictEqual(tensorBytes(parsed.values()), dataBytes)
    const reversed = encode(Object.fromEntries(Object.entries(tensors).reverse()))
    assert.isTrue(Result.isSuccess(parseHeader(reversed, dataBytes, "a")))
  })

  it.prop(
    "is parsed or refused with a sentence, however it is changed, and what is parsed fills the file exactly",
    {
      changes: Schema.Array(Schema.Struct({ at: Place, byte: Byte })).check(Schema.isMaxLength(4)),
      splice: Schema.Struct({ at: Place, remove: Place, insert: Schema.Literals(interesting) }),
      spliced: Schema.Boolean,
      dataBytes: Schema.Literals([0, dataBytes - 1, dataBytes, 2 ** 53 - 1])
    },
    ({ changes, dataBytes, splice, spliced }) => {
      let bytes = Uint8Array.from(whole)
      for (const { at, byte } of changes) bytes[at % bytes.length] = byte
      if (spliced) {
        const at = splice.at % bytes.length
        bytes = Uint8Array.from([...bytes.subarray(0, at), ...encode(splice.insert), ...bytes.subarray(at + (splice.remove % 8))])
      }
      const parsed = parseHeader(bytes, dataBytes, "model.safetensors")
      if (Result.isSuccess(parsed)) assert.strictEqual(tensorBytes(parsed.success.values()), dataBytes)
      else {
        assert.strictEqual(parsed.failure._tag, "Unreadable")
        assert.match(parsed.failure.reason, /^[ -~]+\.$/)
      }
    },
    { arbitrary: { runs: 500 } }
  )

  it.prop(
    "states a length that lies within the file, or is refused",
    { first: Schema.Array(Byte).check(Schema.isMaxLength(12)), size: Place },
    ({ first, size }) => {
      const length = headerLength(Uint8Array.from(first), size, "model.safetensors")
      if (Result.isSuccess(length)) assert.isAtMost(length.success + 8, size)
    }
  )

  it.each([
    ["two tensors of one name", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'],
    ["a list", "[]"],
    ["a byte order mark", "\ufeff{}"],
    ["an unknown type", { a: { dtype: "F128", shape: [1], data_offsets: [0, 1] } }],
    ["a negative side", { a: { dtype: "U8", shape: [-1], data_offsets: [0, 1] } }],
    ["a side that is no whole number", { a: { dtype: "U8", shape: [0.5], data_offsets: [0, 1] } }],
    ["offsets that run backwards", { a: { dtype: "U8", shape: [1], data_offsets: [1, 0] } }],
    ["metadata that is no text", { __metadata__: { a: 1 }, a: { dtype: "U8", shape: [1], data_offsets: [0, 1] } }],
    ["a name that is no name", { "a\nb": { dtype: "U8", shape: [1], data_offsets: [0, 1] } }],
    ["a name that reaches the prototype", '{"__proto__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}']
  ])("is refused with %s", (_, header) => {
    assert.isTrue(Result.isFailure(parseHeader(encode(header), 1, "a")))
  })

  it("is refused unread where it states more than 32 MiB", () => {
    const first = new Uint8Array(8)
    new DataView(first.buffer).setBigUint64(0, 33n * 1024n * 1024n, true)
    assert.isTrue(Result.isFailure(headerLength(first, 2 ** 40, "a")))
  })
})

describe("an index", () => {
  const one = Result.getOrThrow(parseHeader(encode({ a: { dtype: "U8", shape: [1], data_offsets: [0, 1] } }), 1, "x"))
  const listed = new Set(["x.safetensors", "y.safetensors"])

  it("places each tensor in a listed file that holds it, and no tensor is in two", () => {
    const index = Result.getOrThrow(parseIndex(encode({ weight_map: { a: "x.safetensors" } }), "index", listed))
    assert.isTrue(Result.isSuccess(joinShards(new Map([["x.safetensors", one]]), index)))
    const lying = Result.getOrThrow(parseIndex(encode({ weight_map: { b: "x.safetensors" } }), "index", listed))
    assert.isTrue(Result.isFailure(joinShards(new Map([["x.safetensors", one]]), lying)))
    const twice = new Map([
      ["x.safetensors", one],
      ["y.safetensors", one]
    ])
    assert.isTrue(Result.isFailure(joinShards(twice, null)))
  })

  it.each([
    [{ weight_map: { a: "z.safetensors" } }],
    [{ weight_map: { a: "../x.safetensors" } }],
    [{ weight_map: {} }],
    [{ weight_map: { a: 1 } }],
    [{}],
    ["["]
  ])("is refused as %j", (index) => {
    assert.isTrue(Result.isFailure(parseIndex(encode(index), "index", listed)))
  })
})
