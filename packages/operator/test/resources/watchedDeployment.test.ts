import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readSpec, SpecText, WatchedDeployment } from "../../src/resources/WatchedDeployment.ts"

const decode = Schema.decodeUnknownSync(WatchedDeployment.schema)
const tooLarge = 2 ** 60
const metadata = { name: "tiny", namespace: "seatrial", finalizers: ["seatrial.dev/retire"], deletionTimestamp: "2026-01-01T00:00:00Z" }
const spec = { source: { repo: "seatrial/tiny-chat" } }

describe("a ModelDeployment", () => {
  it("whose specification cannot be read keeps its metadata and its status, and says which field is wrong", () => {
    const object = decode({ metadata, spec: { ...spec, serving: { yarn: { factor: 2, originalContext: tooLarge } } }, status: { phase: "activated" } })
    assert.deepStrictEqual([object.metadata.finalizers, object.status?.phase], [["seatrial.dev/retire"], "activated"])
    assert.match(Result.getOrThrow(Result.flip(readSpec(object))), /^spec\.serving\.yarn\.originalContext must be /)
    assert.match(Result.getOrThrow(Result.flip(readSpec(decode({ metadata })))), /^spec must be an object/)
  })

  it("whose specification is larger than any right one is refused, and only its length is kept", () => {
    const large = decode({ metadata, spec: { ...spec, serving: { engineFlags: { seed: Array.from({ length: 16_384 }, () => []) } } } })
    assert.isBelow(JSON.stringify(large).length, 250)
    assert.match(Result.getOrThrow(Result.flip(readSpec(large))), /^spec has 49\d{3} characters as JSON; it must have at most 16384/)
  })

  it("has its specification as text from the first, because a list has those of all objects at once", () => {
    const { spec: held } = decode({ metadata, spec: { ...spec, serving: { engineFlags: { seed: Array.from({ length: 5_000 }, () => []) } } } })
    assert.instanceOf(held, SpecText)
    assert.deepStrictEqual(
      Object.values(held).map((value) => typeof value),
      ["number", "string"]
    )
  })

  it("keeps neither labels, annotations nor the finalizers of others, which may be any number", () => {
    const object = decode({
      metadata: { ...metadata, labels: { a: "b" }, annotations: { a: "b" }, finalizers: ["example.com/a", "seatrial.dev/retire"] },
      spec
    })
    assert.deepStrictEqual(object.metadata, metadata)
  })

  it("whose status cannot be read keeps its specification, and counts as one without a status", () => {
    const object = decode({ metadata, spec, status: { phase: "activated", gpus: tooLarge } })
    assert.isFalse("status" in object)
    assert.deepStrictEqual(readSpec(object), Result.succeed(spec))
  })
})
