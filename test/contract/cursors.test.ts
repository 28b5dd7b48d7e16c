import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import { Ids, OrgId } from "@seatrial/domain"
import { Cursors, type ListIdentity, ServerSettings } from "@seatrial/server"
import { Clock, ConfigProvider, Context, Effect, Layer, Option, Random } from "effect"
import { forge, kinds } from "./cursors/forge.ts"
import { type Draw, makeDraw } from "./pages/Draw.ts"
import { insertRows } from "./pages/ListUnderTest.ts"
import { lists } from "./pages/lists.ts"
import { makeTenant, Stage } from "./Stage.ts"
import { failureOf } from "./Wire.ts"

/** Number of cursors to try in process. Fewer are tried over HTTP. */
const cursors = Number(process.env.CONTRACT_CURSORS ?? 10_000)
const overTheWire = Math.max(3_000, Math.floor(cursors / 50))

const seeded = Effect.gen(function* () {
  const seed = Number(process.env.CONTRACT_SEED ?? (yield* Random.nextIntBetween(0, 2 ** 31)))
  process.stdout.write(`CONTRACT_SEED=${seed} CONTRACT_CURSORS=${cursors}\n`)
  return makeDraw(seed)
})

const cursorsOf = (key: string) =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        Cursors.layer.pipe(
          Layer.provide(ServerSettings.layerConfig),
          Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_CURSOR_KEY: key })))
        )
      )
    ),
    (built) => Context.get(built, Cursors)
  )

const operations = [
  "requests.list",
  "listRequests",
  "deployments.list",
  "listDeployments",
  "listOrgModels",
  "listAuditEvents",
  "listSuspicions",
  "listSuspicionRequests"
] as const
const names = ["model_id", "api_key_id", "status", "from", "to", "q", "visibility"] as const
const values: readonly [string | number, ...Array<string | number>] = ["a", "b", "", "1", "success", 0, 1, 1_700_000_000_000]

const drawList = (draw: Draw, orgIds: readonly [OrgId, ...Array<OrgId>]): ListIdentity => ({
  orgId: draw.of(orgIds),
  operation: draw.of(operations),
  filters: Object.fromEntries(names.filter(() => draw.chance(0.3)).map((name) => [name, draw.of(values)]))
})

const sameList = (a: ListIdentity, b: ListIdentity) =>
  a.orgId === b.orgId && a.operation === b.operation && JSON.stringify(Object.entries(a.filters)) === JSON.stringify(Object.entries(b.filters))

describe("a cursor is refused", () => {
  it.effect(`unless it was made with the key for this list: ${cursors} forged or foreign cursors`, () =>
    Effect.gen(function* () {
      const draw = yield* seeded
      const genuine = yield* cursorsOf("0123456789abcdef")
      const foreign = yield* cursorsOf("0123456789abcdeg")
      const ids = yield* Ids
      const orgIds = [yield* ids.make(OrgId), yield* ids.make(OrgId)] as const
      const position = () => ({ createdAt: draw.below(2 ** 41), id: `${draw.of(["req", "dep", "mdl", "aud"])}_${"0".repeat(draw.of([26, 26, 26, 1, 60]))}` })
      let refused = 0
      for (let tried = 0; refused < cursors; tried++) {
        const list = drawList(draw, orgIds)
        const other = drawList(draw, orgIds)
        const at = position()
        const cursor = genuine.encode(list, at)
        const elsewhere = genuine.encode(other, position())
        if (tried % 50 === 0) assert.deepStrictEqual(genuine.decode(list, cursor), Option.some(at))
        const candidates = [
          ...Array.from({ length: 4 }, (_, index) => forge(draw, tried * 4 + index, cursor, elsewhere)),
          foreign.encode(list, at),
          ...(sameList(list, other) ? [] : [elsewhere])
        ]
        for (const candidate of candidates) {
          if (Option.isSome(genuine.decode(list, candidate))) assert.fail(`${JSON.stringify(list)} took ${candidate}; its own is ${cursor}`)
          refused += 1
        }
      }
    }).pipe(Effect.scoped, Effect.provide(Ids.layer))
  )
})

interface Target {
  readonly path: string
  readonly query: ReadonlyArray<string>
  readonly key: string
  readonly org: string
}
const addressOf = ({ path, query }: Target, more: ReadonlyArray<string>) => `${path}?${[...query, ...more].join("&")}`
const sameTarget = (a: Target, b: Target) => a.org === b.org && a.path === b.path && a.query.toSorted().join("&") === b.query.toSorted().join("&")

layer(Stage.layer(), { excludeTestServices: true, timeout: 300_000 })("over HTTP, with two servers", (it) => {
  it.effect(`${overTheWire} forged or foreign cursors return 400 invalid_cursor, and genuine ones continue with any limit`, () =>
    Effect.gen(function* () {
      const draw = yield* seeded
      const { servers } = yield* Stage
      const sql = yield* PgClient.PgClient
      const now = yield* Clock.currentTimeMillis
      const targets: Array<Target> = []
      const tenants = [yield* makeTenant(false, "cursors"), yield* makeTenant(false, "cursors")] as const
      const keys = new Map<string, readonly [string, string]>()
      for (const { orgId, withKey } of tenants) {
        keys.set(orgId, [(yield* withKey()).secret, (yield* withKey()).secret])
        for (const list of lists) {
          yield* list.prepare(sql, orgId)
          yield* insertRows(list, sql, orgId, draw, [now, ...Array.from({ length: 60 }, () => now + draw.below(3))])
          for (const path of list.paths) {
            for (let set = 0; set < 8; set++) {
              // Without filters, with each filter alone, and with random combinations.
              const filters = list.filters.filter((_, index) => (set < list.filters.length + 1 ? index === set - 1 : draw.chance(0.4)))
              const query = filters.map(({ name, value }) => `${name}=${encodeURIComponent(value(draw, orgId, now))}`)
              targets.push({ path, query, key: keys.get(orgId)?.[0] ?? "", org: orgId })
            }
          }
        }
      }
      const genuine: Array<{ readonly target: Target; readonly cursor: string }> = []
      for (const target of targets) {
        const { status, text } = yield* draw.of(servers).answer({ method: "GET", path: addressOf(target, ["limit=1"]), key: target.key })
        assert.strictEqual(status, 200, text)
        const cursor = /"next_cursor":"([^"]+)"\}$/.exec(text)?.[1]
        if (cursor === undefined) continue
        genuine.push({ target, cursor })
        // A cursor belongs to the organization, not to the API key or the server.
        for (const [index, limit] of ["limit=1", "limit=200", "limit=7"].entries()) {
          const path = addressOf(target, [`cursor=${cursor}`, limit])
          const second = yield* draw.of(servers).answer({ method: "GET", path, key: keys.get(target.org)?.[index % 2] ?? "" })
          assert.strictEqual(second.status, 200, second.text)
        }
      }
      assert.isAbove(genuine.length, 40)
      const [first, ...rest] = genuine
      if (first === undefined) return assert.fail()
      const any = () => draw.of([first, ...rest])
      const attempts = Array.from({ length: overTheWire }, (_, index) => {
        const { cursor, target } = any()
        const other = any()
        if (index % 3 > 0) return { target, cursor: forge(draw, index, cursor, other.cursor) }
        const elsewhere = targets[draw.below(targets.length)] ?? target
        return sameTarget(target, elsewhere) ? { target, cursor: `${cursor}A` } : { target: elsewhere, cursor }
      })
      yield* Effect.forEach(
        attempts,
        Effect.fnUntraced(function* ({ cursor, target }) {
          const more = [`cursor=${encodeURIComponent(cursor)}`, ...(cursor.length % 2 === 0 ? ["limit=3"] : [])]
          const path = addressOf(target, more)
          const answer = yield* draw.of(servers).answer({ method: "GET", path, key: target.key })
          const description = `${path} ${answer.text}`
          assert.strictEqual(answer.status, 400, description)
          const length = Array.from(cursor).length
          // A cursor of an impossible length is reported as an invalid parameter.
          assert.deepInclude(
            Option.getOrThrow(failureOf(answer)),
            { code: length > 256 ? "invalid_parameter" : "invalid_cursor", param: "cursor" },
            description
          )
        }),
        { concurrency: 16, discard: true }
      )
      assert.isAbove(overTheWire, kinds * 10)
    })
  )
})
