import { assert, describe, it } from "@effect/vitest"
import { OrgId } from "@seatrial/domain"
import { ConfigProvider, Effect, Layer, Option, Schema } from "effect"
import { Cursors, type ListIdentity } from "../src/Cursors.ts"
import { ServerSettings } from "../src/index.ts"

const layerOf = (key: string) => {
  const layerConfig = ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_CURSOR_KEY: key }))
  // Fresh, because otherwise a second key would reuse the service of the first.
  return Layer.fresh(Cursors.layer.pipe(Layer.provide(ServerSettings.layerConfig), Layer.provide(layerConfig)))
}
const layerCursors = layerOf("0123456789abcdef")

const orgId = Schema.decodeSync(OrgId)("org_01890000000000000000000000")
const otherOrg = Schema.decodeSync(OrgId)("org_01890000000000000000000001")
const list: ListIdentity = { orgId, operation: "listRequests", filters: { status: "success", from: 5 } }
const position = { createdAt: 1_700_000_000_123, id: "req_01890000000000000000000000" }

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/. "

describe("a cursor", () => {
  it.effect.prop(
    "decodes to its position for the same list, and has at most 256 characters",
    [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 48 - 1 })), Schema.String.check(Schema.isPattern(/^[a-z]{3}_[0-9a-z]{1,60}$/u))],
    ([createdAt, id]) =>
      Effect.gen(function* () {
        const cursors = yield* Cursors
        const cursor = cursors.encode(list, { createdAt, id })
        assert.isAtMost(cursor.length, 256)
        assert.deepStrictEqual(cursors.decode(list, cursor), Option.some({ createdAt, id }))
      }).pipe(Effect.provide(layerCursors))
  )

  it.effect("does not depend on the order of the filters", () =>
    Effect.gen(function* () {
      const cursors = yield* Cursors
      const cursor = cursors.encode(list, position)
      assert.isTrue(Option.isSome(cursors.decode({ ...list, filters: { from: 5, status: "success" } }, cursor)))
    }).pipe(Effect.provide(layerCursors))
  )

  const otherLists: ReadonlyArray<readonly [what: string, list: ListIdentity]> = [
    ["another organization", { ...list, orgId: otherOrg }],
    ["another operation", { ...list, operation: "requests.list" }],
    ["another filter", { ...list, filters: { status: "success", from: 6 } }],
    ["a filter less", { ...list, filters: { status: "success" } }],
    ["a filter more", { ...list, filters: { ...list.filters, to: 9 } }]
  ]
  for (const [what, other] of otherLists) {
    it.effect(`is invalid for ${what}`, () =>
      Effect.gen(function* () {
        const cursors = yield* Cursors
        assert.isTrue(Option.isNone(cursors.decode(other, cursors.encode(list, position))))
      }).pipe(Effect.provide(layerCursors))
    )
  }

  it.effect("is invalid for a server with another key", () =>
    Effect.gen(function* () {
      const cursor = (yield* Cursors).encode(list, position)
      yield* Effect.gen(function* () {
        assert.isTrue(Option.isNone((yield* Cursors).decode(list, cursor)))
      }).pipe(Effect.provide(layerOf("fedcba9876543210")))
    }).pipe(Effect.provide(layerCursors))
  )

  it.effect("is invalid if any character is changed, removed or inserted, or if it is truncated", () =>
    Effect.gen(function* () {
      const cursors = yield* Cursors
      const cursor = cursors.encode(list, position)
      const mutants = new Set<string>(["", "A", "====", `${cursor}${cursor}`, cursor.toLowerCase()])
      for (let index = 0; index < cursor.length; index++) {
        mutants.add(cursor.slice(0, index))
        mutants.add(cursor.slice(index + 1))
        mutants.add(cursor.slice(0, index) + cursor.slice(index + 1))
        for (const character of alphabet) {
          mutants.add(cursor.slice(0, index) + character + cursor.slice(index + 1))
          mutants.add(cursor.slice(0, index) + character + cursor.slice(index))
        }
      }
      for (const character of alphabet) mutants.add(cursor + character)
      mutants.delete(cursor)
      assert.isAbove(mutants.size, 10_000)
      for (const mutant of mutants) assert.isTrue(Option.isNone(cursors.decode(list, mutant)), mutant)
    }).pipe(Effect.provide(layerCursors))
  )
})
