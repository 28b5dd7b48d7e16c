import { assert, describe, it } from "@effect/vitest"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { drawsOf } from "../../faults/Draw.ts"
import { holdToRecords } from "./holdToRecords.ts"
import { openLab, underLoad, until } from "./LossLab.ts"
import { killPostgres, openPostgres } from "./ownPostgres.ts"

const seed = Number(process.env.GATEWAY_SEED ?? Math.floor(Math.random() * 2 ** 31))
const kills = Number(process.env.GATEWAY_KILLS ?? 5)

const report = (what: string, result: object) => Effect.sync(() => process.stdout.write(`${what}, GATEWAY_SEED=${seed}: ${JSON.stringify(result)}\n`))

describe("requests and their records", () => {
  it.live(
    `if a gateway is killed ${kills} times under load, each answer that a caller received is recorded once with its tokens, and all other requests end as lost`,
    () =>
      Effect.gen(function* () {
        const draw = drawsOf(seed)
        const url = Redacted.value(yield* makeTestDatabase(inject("postgres")))
        const lab = yield* openLab(url, 2)
        const kill = Effect.gen(function* () {
          for (let count = 0; count < kills; count++) {
            yield* Effect.sleep(draw.integer(200, 1_500))
            yield* until(() => lab.addresses().length === 2)
            lab.gateways[draw.integer(0, 1)]?.kill()
          }
          yield* until(() => lab.addresses().length === 2)
        })
        const seen = yield* underLoad(lab, draw, 32, kill)
        const result = yield* holdToRecords(url, lab, seen)
        yield* report(`${kills} kills`, result)
        assert.isAbove(seen.filter(({ end }) => end === "finished").length, 20 * kills)
        assert.isAbove(seen.filter(({ end }) => end === "cut").length, 0)
      }).pipe(Effect.scoped),
    180_000 + kills * 20_000
  )

  it.live(
    "whichever of client, gateway, engine and database dies, and however slow the database is, each request has one record, priced at its frozen rates",
    () =>
      Effect.gen(function* () {
        const draw = drawsOf(seed)
        const url = yield* openPostgres
        const lab = yield* openLab(url, 2)
        const { engine, gateways, road } = lab
        const forAWhile = (least: number, most: number) => Effect.suspend(() => Effect.sleep(draw.integer(least, most)))
        const mended = Effect.sync(road.mend)
        const killOne = Effect.sync(() => gateways[draw.integer(0, 1)]?.kill())
        const disasters: ReadonlyArray<readonly [string, Effect.Effect<unknown>]> = [
          ["gateway killed", killOne],
          ["engine died", Effect.sync(engine.die)],
          ["road cut", Effect.andThen(Effect.sync(road.cut), forAWhile(2_500, 4_000))],
          ["road cut for a moment", Effect.andThen(Effect.sync(road.cut), forAWhile(100, 500))],
          ["road blocked", Effect.andThen(Effect.sync(road.block), forAWhile(2_500, 4_000))],
          [
            "road slow",
            Effect.andThen(
              Effect.sync(() => road.slow(draw.integer(20, 300))),
              forAWhile(500, 2_000)
            )
          ],
          ["database killed", killPostgres(url)],
          [
            "road cut, gateway killed",
            Effect.andThen(Effect.sync(road.cut), Effect.andThen(Effect.andThen(forAWhile(2_500, 3_000), killOne), forAWhile(100, 500)))
          ]
        ]
        const order = disasters.map((disaster) => ({ disaster, at: draw.between(0, 1) })).sort((left, right) => left.at - right.at)
        const play = Effect.gen(function* () {
          for (const { disaster } of order) {
            yield* forAWhile(200, 800)
            yield* disaster[1]
            yield* mended
          }
          yield* until(() => lab.addresses().length === 2)
          yield* forAWhile(500, 600)
        })
        const seen = yield* underLoad(lab, draw, 24, play)
        const result = yield* holdToRecords(url, lab, seen)
        const spooled = gateways.reduce((sum, { timesSpooled }) => sum + timesSpooled(), 0)
        yield* report(order.map(({ disaster: [name] }) => name).join(", "), { ...result, spooled })
        assert.isAbove(seen.filter(({ end }) => end === "finished").length, 50)
        assert.isAbove(spooled, 0)
      }).pipe(Effect.scoped)
  )
})
