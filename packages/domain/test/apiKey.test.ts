import { crc32 } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { isApiKey, makeApiKey } from "../src/index.ts"

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

describe("API keys", () => {
  const key = makeApiKey(new Uint8Array(64).map((_, index) => index * 7))

  it("a key is the prefix, 30 random characters and their CRC-32", () => {
    assert.match(key, /^seatrial_[0-9A-Za-z]{36}$/)
    const sum = [...key.slice(39)].reduce((value, char) => value * 62 + base62.indexOf(char), 0)
    assert.strictEqual(sum, crc32(key.slice(9, 39)))
    assert.isTrue(isApiKey(key))
  })

  it.prop(
    "a key with one changed character is rejected without a query",
    [Schema.Int.check(Schema.isBetween({ minimum: 9, maximum: 44 })), Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 61 }))],
    ([position, digit]) => {
      const changed = key.slice(0, position) + base62.charAt(digit) + key.slice(position + 1)
      return changed === key || !isApiKey(changed)
    }
  )

  it.prop("no other text is a key", [Schema.String], ([text]) => !isApiKey(text))
})
