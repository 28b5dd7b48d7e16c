import { assert, describe, it } from "@effect/vitest"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { drawsOf } from "../../faults/Draw.ts"
import { holdToRecords } from "./holdToRecords.ts"
import { openLab, underLoad, until } from "./LossLab.ts"

const seed = Number(process.env.GATEWAY_SEED ?? Math.floor(Math.random() * 2 ** 31))
const kills = Number(process.env.GATEWAY_KILLS ?? 5)

const told = (what: string, result: object) => Effect.sync(() => process.stdout.write(`${what}, GATEWAY_SEED=${seed}: ${JSON.stringify(result)}\n`))

describe("nothing is lost", () => {
  it.live(
    `where a gateway is killed ${kills} times under load: what a caller saw finished is recorded once with the tokens it saw, all else ends as lost`,
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
        yield* told(`${kills} kills`, result)
        assert.isAbove(seen.filter(({ end }) => end === "finished").length, 20 * kills)
        assert.isAbove(seen.filter(({ end }) => end === "cut").length, 0)
      }).pipe(Effect.scoped)
  )
})
