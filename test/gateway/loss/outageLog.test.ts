import { assert, it } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { Billing, Database } from "@seatrial/store"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { openLab } from "./LossLab.ts"

const plan = { pace: 0, tokens: 1, input: 1, read: 0, written: 0, silent: false }
const refusals = 200

it.live(`while Postgres is away, ${refusals} requests that need it are refused, and the gateway's log says so in a few lines`, () =>
  Effect.gen(function* () {
    const url = yield* makeTestDatabase(inject("postgres"))
    const lab = yield* openLab(Redacted.value(url), 1)
    const [gateway] = lab.gateways
    const ask = Effect.suspend(() => lab.askOnce(lab.addresses()[0] ?? "", plan, false))
    // Its spending is read again after an outage, which needs Postgres.
    yield* Effect.flatMap(Billing, (billing) => billing.setSpendLimit(lab.orgId, { month: 10_000_000_000n })).pipe(
      Effect.provide(Billing.layerSql.pipe(Layer.provide(Layer.merge(Ids.layer, Database.layerUrl(url)))))
    )
    assert.strictEqual((yield* ask).end, "finished")
    const before = gateway?.lines() ?? 0
    lab.road.cut()
    for (let refused = 0; refused < refusals; ) if ((yield* ask).status === 503) refused++
    assert.isBelow((gateway?.lines() ?? 0) - before, 20)
    lab.road.mend()
    let last = yield* ask
    while (last.status === 503) last = yield* ask
    assert.strictEqual(last.end, "finished")
  }).pipe(Effect.scoped)
)
