import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Effect, Redacted, Schedule } from "effect"
import { inject } from "vitest"
import { drawsOf } from "../../faults/Draw.ts"
import { openLab, underLoad, until } from "./LossLab.ts"
import { readSlowly } from "./readSlowly.ts"

const slow = Number(process.env.GATEWAY_SLOW_READERS ?? 1_000)
const floods = 10
const usage = { input: 1, read: 0, written: 0, silent: false }

/** Bytes by which memory may grow, for what the collector leaves lying about: a small part of what the floods would fill in that time. */
const slack = 192 * 1024 * 1024

describe("readers of one byte a second", () => {
  it.live(`${slow} of them, and ${floods} more whose engines send at full speed, cost no memory while they read, and do not slow other callers`, () =>
    Effect.gen(function* () {
      const url = yield* makeTestDatabase(inject("postgres"))
      const lab = yield* openLab(Redacted.value(url), 1, { GATEWAY_WRITE_STALL_SECONDS: "4" })
      const { gateways, key, model } = lab
      const [gateway] = gateways
      const address = lab.addresses()[0]
      if (gateway === undefined || address === undefined) return assert.fail()
      const open = (count: number, plan: { readonly pace: number; readonly tokens: number; readonly burst?: number }) =>
        Array.from({ length: count }, () => readSlowly(address, key, model, { ...usage, ...plan }))
      // A hundred kilobytes lie ready for each, and more comes all the time.
      const patient = open(slow, { pace: 1_000, tokens: 1_000_000, burst: 250 })
      yield* Effect.addFinalizer(() => Effect.sync(() => patient.map(({ leave }) => leave())))
      const readAll = Effect.sync(() => {
        for (const { readOne } of patient) readOne()
      })
      yield* Effect.forkScoped(Effect.repeat(readAll, Schedule.spaced("1 second")))
      yield* Effect.timeout(
        until(() => lab.engine.worked.size > slow && patient.every(({ count }) => count() > 0)),
        "4 minutes"
      )
      const before = gateway.resident()

      const flooded = open(floods, { pace: 0, tokens: 10_000_000 })
      let most = 0
      const watch = Effect.sync(() => {
        most = Math.max(most, gateway.resident())
      })
      yield* Effect.forkScoped(Effect.repeat(watch, Schedule.spaced("500 millis")))
      const seen = yield* underLoad(
        lab,
        drawsOf(1),
        8,
        // A caller that does not read for this long is disconnected, after the engine's request is aborted.
        until(() => lab.engine.streams.floodsEnded === floods).pipe(Effect.timeout("4 minutes"), Effect.orDie)
      )
      assert.isBelow(most, before + slack)
      assert.isAbove(seen.length, 16)
      for (const one of seen) assert.isTrue(one.end === "finished" || one.end === "left", JSON.stringify(one))
      assert.isAtLeast(lab.engine.streams.all, slow)
      for (const { leave } of [...patient, ...flooded]) leave()

      const counts = Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        return yield* sql<{ state: string; status: number | null; n: number }>`
          SELECT r.state, r.status_code AS status, count(*)::integer AS n FROM requests r
          LEFT JOIN receipts p ON p.org_id = r.org_id AND p.created_at = r.created_at AND p.request_id = r.id
          WHERE r.org_id = ${lab.orgId} AND (r.status_code IS NULL OR (r.status_code = 499 AND p.output_tokens > 0 AND r.output_tokens = p.output_tokens)) GROUP BY 1, 2`
      }).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })))
      let found = yield* counts
      while (found.some(({ state }) => state === "running")) found = yield* Effect.andThen(Effect.sleep("100 millis"), counts)
      const left = found.find(({ status }) => status === 499)?.n ?? 0
      assert.isAtLeast(left, slow + floods)
      yield* Effect.sync(() =>
        process.stdout.write(
          `${slow} slow readers: ${Math.round(before / 1_048_576)} MiB, at most ${Math.round(most / 1_048_576)} MiB, ${seen.length} others served\n`
        )
      )
    }).pipe(Effect.scoped)
  )
})
