import { assert, it } from "@effect/vitest"
import { OrgId } from "@seatrial/domain"
import { Billing } from "@seatrial/store"
import { Clock, Deferred, Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { type AttackStage, openStage } from "./AttackStage.ts"
import { sendRequest } from "./sendRequest.ts"

/** Micro-dollars that the organization may spend a day, and what each request costs: 18 tokens at a micro-dollar. */
const [allowed, cost] = [27_000, 18]
const clients = 64
const body = { model: "tiny", messages: [{ role: "user", content: "hi" }] }

interface Sent {
  readonly sentAt: number
  readonly endedAt: number
  readonly status: number | "closed"
}

const Sum = Schema.Tuple([Schema.Struct({ spent: Schema.BigIntFromString })])

/** Sends requests to the gateways in turn until three in a row are refused for money. */
const spend = Effect.fnUntraced(function* (stage: AttackStage, client: number, onAnswer: (sent: Sent) => void) {
  let refused = 0
  for (let turn = client; refused < 3; turn++) {
    const gateway = stage.gateways[turn % stage.gateways.length]
    if (gateway === undefined || gateway.hasEnded()) continue
    const sentAt = yield* Clock.currentTimeMillis
    const { status } = yield* sendRequest({ ...stage, address: gateway.address }, { body })
    onAnswer({ sentAt, endedAt: yield* Clock.currentTimeMillis, status })
    refused = status === 402 ? refused + 1 : 0
  }
})

it.live("64 clients on two gateways, one of which is killed, spend no more than the limit and the requests that were admitted before it", () =>
  Effect.gen(function* () {
    const settings = { GATEWAY_REQUESTS_PER_KEY: "100000", GATEWAY_REQUESTS_PER_ORG: "100000", GATEWAY_KEY_CONCURRENCY: "128" }
    const { stage, store } = yield* openStage(2, settings, ({ attacker }) =>
      Effect.gen(function* () {
        const billing = yield* Billing
        yield* billing.setSpendLimit(OrgId.make(attacker.orgId), { day: BigInt(allowed) })
      }).pipe(Effect.provide(Billing.layerSql))
    )
    const sent: Array<Sent> = []
    const isHalfSpent = yield* Deferred.make<void>()
    const onAnswer = (answer: Sent) => {
      sent.push(answer)
      if (sent.length === allowed / cost / 2) Deferred.doneUnsafe(isHalfSpent, Effect.void)
    }
    const spending = Effect.forEach(
      Array.from({ length: clients }, (_, client) => client),
      (client) => spend(stage, client, onAnswer),
      { concurrency: "unbounded", discard: true }
    )
    const killing = Effect.andThen(Deferred.await(isHalfSpent), stage.gateways[1]?.kill ?? Effect.void)
    yield* Effect.all([spending, killing], { concurrency: 2, discard: true })
    assert.isTrue(stage.gateways[1]?.hasEnded())
    const firstRefusal = Math.min(...sent.filter(({ status }) => status === 402).map(({ endedAt }) => endedAt))
    // After the first refusal, every later request is refused at both gateways.
    assert.deepStrictEqual(
      sent.filter(({ sentAt, status }) => sentAt > firstRefusal && status === 200),
      []
    )
    const { committed, counted } = yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const billing = yield* Billing
      const rows = yield* sql`SELECT coalesce(sum(cost_micros), 0)::text AS spent FROM requests WHERE org_id = ${stage.attacker.orgId}`
      const [day] = yield* billing.allowances(OrgId.make(stage.attacker.orgId))
      return { committed: Number(Schema.decodeUnknownSync(Sum)(rows)[0].spent), counted: Number(day?.spent) }
    }).pipe(Effect.provide(Billing.layerSql), Effect.provide(store))
    // The sums equal the records, to the micro-dollar, although a gateway was killed between them.
    assert.strictEqual(counted, committed)
    assert.isAtLeast(committed, allowed)
    assert.isBelow(committed, allowed + clients * cost)
  }).pipe(Effect.scoped)
)
