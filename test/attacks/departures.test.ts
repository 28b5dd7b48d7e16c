import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { AttackStage } from "./AttackStage.ts"
import { attack } from "./attack.ts"
import { sendRequest } from "./sendRequest.ts"

/** Callers at once. */
const callers = 8
/** Milliseconds between two requests of a caller: metering is attacked here, and not the rate of requests. */
const pace = 200
/** Milliseconds after which the latest leaves: the answer takes about as long. */
const latest = 50
/** Tokens of each prompt, as the engine reports them; at the stage's prices each costs a micro-dollar. */
const promptTokens = 10

/** Sends requests, each second one streamed, and disconnects from each at a different moment. */
const leave = Effect.fnUntraced(function* (stage: AttackStage, index: number) {
  for (let count = 0; count < 10_000; count++) {
    const body = { model: stage.model, stream: (count + index) % 2 === 0, messages: [{ role: "user", content: `a prompt to be cached ${index}` }] }
    const stay = 1 + ((count * 17 + index * 31) % latest)
    yield* Effect.timeoutOption(sendRequest(stage, { body }), stay)
    yield* Effect.sleep(pace - stay)
  }
})

const attackers = Array.from({ length: callers }, (_, index) => index)

attack({
  name: "callers that disconnect before the answer pay for each prompt that reached an engine, and slow down nobody else",
  run: (stage) => Effect.forEach(attackers, (index) => leave(stage, index), { concurrency: "unbounded", discard: true }),
  verify: Effect.fnUntraced(function* (_, { attacker }) {
    const sql = yield* SqlClient.SqlClient
    const running = sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM requests WHERE org_id = ${attacker.orgId} AND state = 'running'`
    while ((yield* running)[0]?.count !== 0) yield* Effect.sleep("100 millis")
    const ended = yield* sql<{ readonly note: string; readonly cost_micros: string }>`
      SELECT r.note, q.cost_micros::text FROM requests q JOIN receipts r ON r.org_id = q.org_id AND r.request_id = q.id
      WHERE q.org_id = ${attacker.orgId} AND q.status_code = 499`
    const free = ended.filter(({ cost_micros, note }) => Number(cost_micros) < promptTokens && !note.endsWith("No engine got the request."))
    assert.isAbove(ended.length, 50)
    assert.deepStrictEqual(free, [])
  })
})
