import { PgClient } from "@effect/sql-pg"
import { Clock, Data, Effect, Schema } from "effect"
import { makeTenant, Stage } from "../Stage.ts"
import { bodyOf } from "../Wire.ts"
import { makeDraw } from "./Draw.ts"
import { insertRows, type ListUnderTest, type Page, type Row, remaining } from "./ListUnderTest.ts"

/** The size of one test: records within a few milliseconds, and the number of times to page through them. */
export const Plan = Schema.Struct({
  seed: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 32 - 1 })),
  records: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 150 })),
  /** Milliseconds that the records are spread over. */
  spread: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })),
  walks: Schema.Int.check(Schema.isBetween({ minimum: 4, maximum: 10 })),
  /** Maximum number of records that arrive between two pages. */
  arrivals: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 }))
})

/** A page differs from the oracle. */
export class Disagreement extends Data.TaggedError("Disagreement")<{ readonly message: string }> {}

/** Coverage of the walks. */
export interface Coverage {
  pages: number
  /** Pages that ended between two records of the same millisecond. */
  cutTies: number
  /** Records that arrived during a walk, before and after its position. */
  arrivedBefore: number
  arrivedAfter: number
  readonly combinations: Set<string>
}

/** The start of the next month. Requests before and after it are in different partitions. */
const nextMonth = (now: number) => Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth() + 1, 1)

/**
 * Fills two organizations with records of the same milliseconds and follows the cursors of one to the end, with random filters, limits and
 * servers. Each page must contain exactly the records that the oracle expects after the last one. So no record is repeated, and no record that
 * existed at the start is missing.
 */
export const walkThrough = Effect.fnUntraced(function* (list: ListUnderTest, plan: typeof Plan.Type, met: Coverage) {
  const { servers } = yield* Stage
  const sql = yield* PgClient.PgClient
  const draw = makeDraw(plan.seed)
  const middle = nextMonth(yield* Clock.currentTimeMillis)
  const tenant = yield* makeTenant(false, "pages")
  const stranger = yield* makeTenant(false, "stranger")
  const { secret: key } = yield* tenant.withKey()
  const someTime = () => middle + draw.below(plan.spread) - Math.floor(plan.spread / 2)
  const rows: Array<Row> = []
  const add = Effect.fnUntraced(function* (times: ReadonlyArray<number>) {
    const [first, ...rest] = times
    if (first === undefined) return []
    const inserted = yield* insertRows(list, sql, tenant.orgId, draw, [first, ...rest])
    rows.push(...inserted)
    return inserted
  })

  rows.push(...(yield* list.prepare(sql, tenant.orgId)))
  yield* list.prepare(sql, stranger.orgId)
  yield* add(Array.from({ length: plan.records }, someTime))
  yield* insertRows(list, sql, stranger.orgId, draw, [middle, someTime(), someTime()])

  for (let walk = 0; walk < plan.walks; walk++) {
    const path = draw.of(list.paths)
    const filterValues = list.filters.filter(() => draw.chance(0.5)).map((filter) => [filter, filter.value(draw, tenant.orgId, middle)] as const)
    met.combinations.add([path, ...filterValues.map(([{ name }]) => name)].join(" "))
    const filters = filterValues.map(([{ name }, value]) => `${name}=${encodeURIComponent(value)}`)
    let cursor: string | null = null
    let last: Row | null = null
    do {
      const limit = draw.of([null, 1, 2, 3, 5, 8, 13, 50, 200])
      const parameters: ReadonlyArray<string> = [...filters, ...(limit === null ? [] : [`limit=${limit}`]), ...(cursor === null ? [] : [`cursor=${cursor}`])]
      const asking: string = `${path}?${parameters.join("&")}`
      const left = remaining(rows, filterValues, last)
      const expected = left.slice(0, limit ?? 50)
      const answer = yield* draw.of(servers).answer({ method: "GET", path: asking, key })
      const differs = (what: string) =>
        new Disagreement({
          message: `GET ${asking}: ${what}\nexpected ${expected.map(({ id }) => id).join(" ")} of ${left.length} left\nanswered ${answer.text}`
        })
      if (answer.status !== 200) return yield* differs(`status ${answer.status}`)
      const page: Page = bodyOf(list.page(path), answer)
      const shown = page.data.map(({ created_at, id }) => `${id} ${created_at}`).join()
      if (shown !== expected.map(({ at, id }) => `${id} ${new Date(at).toISOString()}`).join()) return yield* differs("other records")
      if ((page.next_cursor === null) !== left.length <= expected.length) return yield* differs("next_cursor indicates another end")
      met.pages += 1
      cursor = page.next_cursor
      last = expected.at(-1) ?? last
      const next = left[expected.length]
      if (cursor !== null && last !== null && last.at === next?.at) met.cutTies += 1
      const at = last?.at ?? middle
      // Newer than all records, in the millisecond at the end of the page, or at a random time.
      const arriving = Array.from({ length: draw.below(plan.arrivals + 1) }, () => draw.of([middle + 1_000 + draw.below(3), at, someTime()]))
      const arrived = yield* add(cursor === null ? [] : arriving)
      const after = remaining(arrived, filterValues, last).length
      met.arrivedAfter += after
      met.arrivedBefore += remaining(arrived, filterValues, null).length - after
    } while (cursor !== null)
  }
})
