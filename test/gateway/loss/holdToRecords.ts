import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { costMicros, type Usage } from "@seatrial/domain"
import { Effect, Redacted } from "effect"
import type { Seen } from "./ask.ts"
import type { LossLab } from "./LossLab.ts"

interface Row {
  readonly id: string
  readonly state: string
  readonly status_code: number | null
  readonly error_code: string | null
  readonly finish_reason: string | null
  readonly input_tokens: number | null
  readonly output_tokens: number | null
  readonly cache_read_tokens: number | null
  readonly cache_write_tokens: number | null
  readonly cost_micros: string | null
}

interface Kept extends Row {
  readonly input_micros_per_mtok: string
  readonly output_micros_per_mtok: string
  readonly cache_read_micros_per_mtok: string
  readonly cache_write_micros_per_mtok: string
  readonly note: string | null
}

const tokensOf = (row: Row) => [row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens]

const usageOf = (row: Row): Usage => ({
  input_tokens: row.input_tokens ?? -1,
  output_tokens: row.output_tokens ?? -1,
  cache_read_tokens: row.cache_read_tokens,
  cache_write_tokens: row.cache_write_tokens
})

/** What status a record may have, by what its caller saw. */
const lost = [500, 502, 503, 504]

/** Waits until nothing runs any more, and holds every record to what its caller saw. Gives how many there were of each outcome. */
export const holdToRecords = (databaseUrl: string, lab: LossLab, seen: ReadonlyArray<Seen>) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const running = sql<{ n: number }>`SELECT count(*)::integer AS n FROM requests WHERE org_id = ${lab.orgId} AND state = 'running'`
    const wait = Effect.gen(function* () {
      while (((yield* running)[0]?.n ?? 1) > 0) yield* Effect.sleep("100 millis")
    })
    // The last gateway is dead. Waits for a lease, a watch of the same length, and a round of the sweep, with time for a busy machine.
    yield* Effect.timeout(wait, "60 seconds")
    const records = yield* sql<Row>`
      SELECT id, state, status_code, error_code, finish_reason, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros::text
      FROM requests WHERE org_id = ${lab.orgId}`
    const receipts = yield* sql<Kept>`
      SELECT request_id AS id, 'completed' AS state, status_code, NULL AS error_code, finish_reason, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
        cost_micros::text, input_micros_per_mtok::text, output_micros_per_mtok::text, cache_read_micros_per_mtok::text, cache_write_micros_per_mtok::text, note
      FROM receipts WHERE org_id = ${lab.orgId}`
    const recordOf = new Map(records.map((row) => [row.id, row]))
    const receiptOf = new Map(receipts.map((row) => [row.id, row]))
    assert.deepStrictEqual([recordOf.size, receiptOf.size], [records.length, receipts.length], "each once")

    for (const record of records) {
      const receipt = receiptOf.get(record.id)
      if (record.state === "refused") {
        assert.isUndefined(receipt, record.id)
        assert.deepStrictEqual([record.cost_micros, ...tokensOf(record)], ["0", null, null, null, null])
        continue
      }
      assert.strictEqual(record.state, "completed")
      assert.isDefined(receipt, `${record.id} has a receipt`)
      if (receipt === undefined) continue
      assert.deepStrictEqual([tokensOf(receipt), receipt.cost_micros, receipt.status_code], [tokensOf(record), record.cost_micros, record.status_code])
      assert.strictEqual(record.cost_micros, costMicros(usageOf(record), receipt).toString(), `${record.id}: tokens by frozen rates`)
      assert.isTrue(tokensOf(record).every((count) => count === null || count >= 0))
    }
    const outcomes: Record<string, number> = {}
    for (const one of seen) {
      const record = one.id === null ? undefined : recordOf.get(one.id)
      const what = JSON.stringify({ seen: one, record, receipt: one.id === null ? undefined : receiptOf.get(one.id) })
      const outcome = `${one.end} ${one.error ?? ""} ${record?.state ?? "no record"} ${record?.status_code ?? ""} ${record?.error_code ?? ""}`
        .replace(/ +/g, " ")
        .trim()
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      if (one.end === "finished") {
        assert.deepStrictEqual([record?.state, record?.status_code, record?.error_code, record?.finish_reason], ["completed", 200, null, "stop"], what)
        const { input, read, silent, tokens, written } = one.plan
        assert.strictEqual(one.tokens, tokens, what)
        if (record === undefined) continue
        if (silent) assert.isNotNull(receiptOf.get(record.id)?.note, what)
        else assert.deepStrictEqual(tokensOf(record), [input, tokens, read, written], what)
        if (!silent) {
          assert.deepStrictEqual([one.usage?.prompt_tokens, one.usage?.completion_tokens], [input + read + written, tokens], what)
          assert.isNull(receiptOf.get(record.id)?.note?.includes("counts") ? "counted" : null, what)
        }
      } else if (one.tokens > 0) {
        // A part of the answer was sent. It is recorded, and not as a success that no caller saw, unless its end was already being sent.
        assert.strictEqual(record?.state, "completed", what)
        if (one.end === "left") {
          assert.include([499, 200, ...lost], record?.status_code, what)
          if (record?.status_code === 499) assert.isAtLeast(record.output_tokens ?? 0, one.tokens, what)
        } else if (one.end === "told") assert.include(lost, record?.status_code, what)
        else assert.include([200, ...lost], record?.status_code, what)
      } else if (one.end === "told" && record !== undefined) {
        assert.include(record.state === "refused" ? [one.status] : [one.status, ...lost], record.status_code, what)
      }
    }
    const asked = new Set(seen.flatMap(({ id }) => id ?? []))
    // Who was cut off before the head does not know its id.
    const unheard = seen.filter(({ id }) => id === null).length
    const strangers = records.filter(({ id }) => !asked.has(id)).length
    return { outcomes, unheard, strangers, records: records.length }
  }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(databaseUrl), maxConnections: 1 })))
