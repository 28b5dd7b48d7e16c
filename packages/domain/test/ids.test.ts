import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { DeploymentId, encodeIdBody, Ids, idMillis, OrgId, RequestId } from "../src/index.ts"

const maxMillis = 2 ** 48 - 1
const Millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxMillis }))

describe("ids", () => {
  it.prop("an id contains its creation time", [Millis], ([millis]) => {
    const body = encodeIdBody(millis, crypto.getRandomValues(new Uint8Array(10)))
    return body.length === 26 && idMillis(`req_${body}`) === millis
  })

  it.prop("id order is time order", [Millis, Millis], ([a, b]) => {
    const low = encodeIdBody(a, new Uint8Array(10).fill(255))
    const high = encodeIdBody(b, new Uint8Array(10))
    return a === b || a < b === low < high
  })

  it("the 26 characters are a UUIDv7 with version and variant as in RFC 9562", () => {
    const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    const value = [...encodeIdBody(1_700_000_000_000, new Uint8Array(10).fill(255))].reduce((sum, char) => sum * 32n + BigInt(alphabet.indexOf(char)), 0n)
    const hex = value.toString(16).padStart(32, "0")
    assert.strictEqual(hex.slice(0, 12), (1_700_000_000_000).toString(16).padStart(12, "0"))
    assert.strictEqual(hex[12], "7")
    assert.match(hex[16] ?? "", /[89ab]/)
  })

  it.effect("an id uses its record's clock and matches only its own kind", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_800_000_000_123)
      const ids = yield* Ids
      const id = yield* ids.make(DeploymentId)
      assert.strictEqual(idMillis(id), 1_800_000_000_123)
      assert.isTrue(Schema.is(DeploymentId)(id))
      assert.isFalse(Schema.is(RequestId)(id))
      assert.match(yield* ids.make(OrgId, 5), /^org_/)
    }).pipe(Effect.provide(Ids.layer))
  )
})
