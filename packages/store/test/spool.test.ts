import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import { Ids, KeyId, ModelId, OrgId, RevisionId } from "@seatrial/domain"
import { ConfigProvider, Context, Effect, Exit, Layer, Option, type Redacted, Schema, Scope } from "effect"
import { ConnectionError, ConstraintError, SqlError } from "effect/sql/SqlError"
import { inject } from "vitest"
import {
  Allowances,
  ApiKeys,
  Billing,
  Database,
  Deployments,
  HubConnections,
  Metering,
  Organizations,
  type RequestStart,
  Requests,
  Runs,
  SpoolSettings
} from "../src/index.ts"
import { endRow } from "../src/metering/endRow.ts"
import type { EndRow } from "../src/metering/rows.ts"
import { Spool } from "../src/metering/Spool.ts"
import { maxPayload, SpoolFile } from "../src/metering/SpoolFile.ts"
import { toPayload } from "../src/metering/spoolRow.ts"
import { ProcessSpooledCosts, SpooledCosts } from "../src/spending/SpooledCosts.ts"
import { endOf, startOf, usage } from "./requestRows.ts"
import { encryptionKey, layerRole, soon } from "./stage.ts"
import { beginRequest, makeCaller, makeServing, makeTestDatabase, withoutDatabase } from "./support/index.ts"

const scratch = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-spool-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const contents = (path: string) =>
  Effect.gen(function* () {
    const file = yield* Effect.promise(() => SpoolFile.open(path))
    const texts: Array<string> = []
    let damaged = 0
    for (let at = 0; at < file.size; ) {
      const read = yield* Effect.promise(() => file.read(at, 3))
      texts.push(...read.payloads.map(String))
      damaged += read.damaged
      at = read.next
    }
    return { file, texts, damaged }
  })

describe("the spool file", () => {
  it.effect.prop(
    "contains every confirmed append, wherever a crash cut off the unconfirmed one",
    [Schema.Array(Schema.String).check(Schema.isMinLength(1), Schema.isMaxLength(8)), Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000 }))],
    ([texts, cut]) =>
      Effect.gen(function* () {
        const path = join(yield* scratch, "a", "records.spool")
        const first = yield* Effect.promise(() => SpoolFile.open(path))
        const lengths: Array<number> = []
        for (const text of texts) {
          yield* Effect.promise(() => first.append([Buffer.from(text)]))
          lengths.push(first.size)
        }
        yield* Effect.promise(() => first.close())
        const bytes = readFileSync(path)
        const left = bytes.subarray(0, Math.floor((bytes.length * cut) / 1_000))
        writeFileSync(path, left)
        const complete = lengths.filter((length) => length <= left.length).length
        const torn = yield* contents(path)
        const same = texts.map((text) => String(Buffer.from(text)))
        assert.deepStrictEqual([torn.texts, torn.damaged, torn.file.size], [same.slice(0, complete), 0, lengths[complete - 1] ?? 0])
        yield* Effect.promise(() => torn.file.append([Buffer.from("after")]))
        yield* Effect.promise(() => torn.file.close())
        const again = yield* contents(path)
        assert.deepStrictEqual(again.texts, [...same.slice(0, complete), "after"])
        yield* Effect.promise(() => again.file.close())
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 20 } }
  )

  it.effect("returns all complete frames after damage in the middle", () =>
    Effect.gen(function* () {
      const path = join(yield* scratch, "records.spool")
      const first = yield* Effect.promise(() => SpoolFile.open(path))
      yield* Effect.promise(() => first.append(["one", "two", "three"].map((text) => Buffer.from(text))))
      yield* Effect.promise(() => first.close())
      const bytes = readFileSync(path)
      bytes[bytes.indexOf("two")] = 0
      writeFileSync(path, bytes)
      const { damaged, file, texts } = yield* contents(path)
      assert.deepStrictEqual([texts, damaged], [["one", "three"], 15])
      yield* Effect.promise(() => file.close())
    }).pipe(Effect.scoped)
  )
})

it.effect("a payload that is too long to be read again is rejected, and nothing of its append stays", () =>
  Effect.gen(function* () {
    const path = join(yield* scratch, "records.spool")
    const first = yield* Effect.promise(() => SpoolFile.open(path))
    const longest = Buffer.alloc(maxPayload, "a")
    yield* Effect.promise(() => first.append([longest]))
    const { size } = first
    assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.tryPromise(() => first.append([Buffer.from("b"), Buffer.alloc(maxPayload + 1)])))))
    assert.deepStrictEqual([first.size, statSync(path).size], [size, size])
    yield* Effect.promise(() => first.close())
    const { damaged, file, texts } = yield* contents(path)
    assert.deepStrictEqual([texts, damaged], [[String(longest)], 0])
    yield* Effect.promise(() => file.close())
  }).pipe(Effect.scoped)
)

it.live("records that are set aside are not billed and no longer count as spent, whether the database rejected them or they are too long", () =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const costs = new SpooledCosts()
    const ids = yield* Ids
    const orgId = yield* ids.make(OrgId)
    const keyId = yield* ids.make(KeyId)
    const refuses = () => Effect.fail(new SqlError({ reason: new ConstraintError({ cause: new Error("refused") }) }))
    const spool = yield* Spool.make({ folder, maxBytes: 1_000_000 }, { insert: refuses, checkpoint: refuses, end: refuses }).pipe(
      Effect.provideService(ProcessSpooledCosts, costs)
    )
    const served = { modelId: yield* ids.make(ModelId), model: "a/b", revisionId: yield* ids.make(RevisionId) }
    const endRowOf = Effect.fnUntraced(function* (note: string | null) {
      const start = yield* startOf({ orgId, keyId }, served)
      return endRow(endOf(start, { note }))
    })
    const { store } = spool.fallback<EndRow>((row) => ({ kind: "end", row }))
    yield* store([yield* endRowOf("x".repeat(maxPayload))], false)
    assert.strictEqual(costs.of(orgId), 0n)
    yield* store([yield* endRowOf(null)], false)
    assert.strictEqual(costs.of(orgId), 700n)
    yield* soon(Effect.sync(() => costs.of(orgId) === 0n))
    assert.isAbove(statSync(join(folder, "records.spool.refused")).size, maxPayload)
  }).pipe(Effect.provide(Ids.layer), Effect.scoped)
)

class Url extends Context.Service<Url, Redacted.Redacted<string>>()("seatrial/test/Url") {}

const layerUrl = Layer.effect(
  Url,
  Effect.suspend(() => makeTestDatabase(inject("postgres")))
)
const layerStore = Layer.mergeAll(ApiKeys.layerSql, Billing.layerSql, Deployments.layerSql, Organizations.layerSql, Requests.layerSql, Runs.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge(Ids.layer),
  Layer.provideMerge(Layer.unwrap(Effect.map(Url, (url) => Database.layerUrl(url)))),
  Layer.provideMerge(layerUrl),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: encryptionKey })))
)

/** A gateway's metering with the gateway's privileges and a spool in the folder, until the scope closes. */
const meteringAt = Effect.fnUntraced(function* (folder: string, maxBytes = 1_000_000) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const context = yield* Layer.buildWithScope(Metering.layerSql.pipe(Layer.provide(layerRole("gateway"))), scope).pipe(
    Effect.provideService(SpoolSettings, { folder, maxBytes })
  )
  return { metering: Context.get(context, Metering), close: Scope.close(scope, Exit.void) }
})

const digests = { alg: "hmac-sha-256", request: "cmVxdWVzdA", answer: "YW5zd2Vy" } as const
const withDigests = (start: RequestStart) => endOf(start, { receipt: { ...endOf(start).receipt, digests } })

layer(layerStore, { excludeTestServices: true })("while the database is unavailable", (it) => {
  it.effect("records wait on disk, and are in the database once, with their receipts, after it returns or the gateway restarts", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const requests = yield* Requests
      const folder = yield* scratch
      const { caller } = yield* makeCaller("spooled")
      const served = yield* makeServing(caller, "k")
      const [before, complete, open, refused, swept, late] = yield* Effect.all([
        startOf(caller, served),
        startOf(caller, served),
        startOf(caller, served),
        startOf(caller, served),
        startOf(caller, served),
        startOf(caller, served)
      ])
      const error = { code: "model_overloaded", message: "m", param: null }
      const first = yield* meteringAt(folder, 10_000)
      yield* Effect.forEach([before, swept], (start) => beginRequest(first.metering, start))
      // Other gateways consider that gateway lost.
      yield* sql`UPDATE requests SET state = 'completed', status_code = 500, error_code = 'gateway_lost', cost_micros = 0, latency_ms = 1 WHERE id = ${swept.id}`
      const path = join(folder, "records.spool")
      let copy = Buffer.alloc(0)
      yield* withoutDatabase(
        inject("postgres"),
        yield* Url,
        Effect.gen(function* () {
          yield* first.metering.end(withDigests(before))
          yield* Effect.forEach([complete, open, refused, late], (start) => beginRequest(first.metering, start), { concurrency: "unbounded" })
          yield* first.metering.checkpoint(open, usage)
          yield* first.metering.end(endOf(complete))
          // A full spool takes no new requests, but still takes ends.
          const more = yield* Effect.forEach(Array.from({ length: 20 }), () =>
            Effect.flatMap(startOf(caller, served), (start) => Effect.exit(beginRequest(first.metering, start)))
          )
          assert.isTrue(more.some(Exit.isFailure))
          yield* first.metering.end(withDigests(swept))
          yield* first.metering.refuse({ ...refused, statusCode: 503, latencyMs: 1, error })
          // A record that is too long for the file is set aside, and its caller does not wait.
          const long = { ...(yield* startOf(caller, served)), statusCode: 400, latencyMs: 1, error: { ...error, message: "m".repeat(maxPayload) } }
          yield* first.metering.refuse(long)
          assert.include(readFileSync(`${path}.refused`, "latin1"), long.id)
          copy = readFileSync(path)
        })
      )
      // The first statement uses a cut connection.
      yield* Effect.retry(sql`SELECT 1`, { times: 20 })
      yield* first.metering.end(endOf(late))
      yield* soon(Effect.sync(() => statSync(path).size === 0))
      const storedState = Effect.gen(function* () {
        const of = Effect.fnUntraced(function* (id: string) {
          const record = Option.getOrThrow(yield* requests.find(caller.orgId, id))
          const receipt = Option.getOrNull(yield* requests.findReceipt(caller.orgId, id))
          return [record.state, record.status_code, record.error?.code, record.cost_micros, receipt?.usage.output_tokens, receipt?.note]
        })
        return yield* Effect.forEach([before, complete, late, open, refused, swept], ({ id }) => of(id))
      })
      const completed = ["completed", 200, undefined, "700", 2_000, undefined]
      const expected = [
        completed,
        completed,
        completed,
        ["running", null, undefined, null, undefined, undefined],
        ["refused", 503, "model_overloaded", "0", undefined, undefined],
        [...completed.slice(0, 5), "The gateway lost its connection to the database for longer than its lease, and reported the result of this request later."]
      ]
      assert.deepStrictEqual(yield* storedState, expected)
      const digestsOf = (ids: ReadonlyArray<{ readonly id: string }>) =>
        Effect.forEach(ids, ({ id }) => Effect.map(requests.findStoredReceipt(caller.orgId, id), (receipt) => Option.getOrThrow(receipt).digests))
      assert.deepStrictEqual(yield* digestsOf([before, swept, complete]), [digests, digests, null])

      // The gateway was killed before it had emptied its spool: the next one writes everything again, and nothing
      // changes.
      yield* first.close
      writeFileSync(path, Buffer.concat([copy, Buffer.from("SPL1torn")]))
      const second = yield* meteringAt(folder)
      assert.strictEqual(statSync(path).size, 0)
      assert.deepStrictEqual(yield* storedState, expected)
      const { items } = yield* requests.list(caller.orgId, { limit: 100, after: null })
      assert.strictEqual(items.length, 5)
      yield* second.close
      // An end of an earlier version does not contain the data of its begin.
      const file = yield* Effect.promise(() => SpoolFile.open(path))
      yield* Effect.promise(() => file.append([toPayload({ kind: "end", row: endRow(withDigests(open)) })]))
      yield* Effect.promise(() => file.close())
      const third = yield* meteringAt(folder)
      assert.strictEqual(Option.getOrThrow(yield* requests.find(caller.orgId, open.id)).state, "completed")
      assert.deepStrictEqual(yield* digestsOf([open]), [digests])
      yield* third.close
    }).pipe(Effect.scoped)
  )

  it.effect("costs in the spool of a killed gateway still count as spent after its restart, before its records are written", () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      const { caller } = yield* makeCaller("killed")
      const served = yield* makeServing(caller, "k")
      const billing = yield* Billing
      yield* billing.setPrepaid(caller.orgId, true)
      assert.isTrue(Option.isNone(yield* billing.usedUp(caller.orgId)))
      const unavailable = () => Effect.fail(new SqlError({ reason: new ConnectionError({ cause: new Error("unavailable") }) }))
      const spoolOf = (costs: SpooledCosts) =>
        Spool.make({ folder, maxBytes: 10_000_000 }, { insert: unavailable, checkpoint: unavailable, end: unavailable }).pipe(
          Effect.provideService(ProcessSpooledCosts, costs)
        )
      // Stays open, because a killed process closes nothing.
      const { store } = (yield* spoolOf(new SpooledCosts())).fallback<EndRow>((row) => ({ kind: "end", row }))
      // More than one batch of a replay.
      const rows = yield* Effect.forEach(Array.from({ length: 600 }), () => Effect.map(startOf(caller, served), (start) => endRow(endOf(start))))
      yield* store(
        rows.map((row) => ({ ...row, costMicros: 10_000n })),
        true
      )

      const costs = new SpooledCosts()
      yield* spoolOf(costs)
      assert.strictEqual(costs.of(caller.orgId), 6_000_000n)
      const allowances = yield* Layer.build(Layer.fresh(Allowances.layerSql)).pipe(Effect.provideService(ProcessSpooledCosts, costs))
      const refusal = Context.get(allowances, Allowances).check({ ...caller, spendLimited: true }, "tokens", 1)
      assert.deepStrictEqual(yield* Effect.isEffect(refusal) ? refusal : Effect.succeed(refusal), {
        of: "organization",
        kind: "balance",
        limit: 5_000_000n,
        spent: 6_000_000n,
        period: "5000000"
      })
    }).pipe(Effect.scoped)
  )
})
