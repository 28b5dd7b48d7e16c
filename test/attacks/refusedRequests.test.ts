import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { sendRequest } from "./sendRequest.ts"

const bodies = [
  { body: "{" },
  { body: { model: "no/model" } },
  { body: { model: "tiny", foo: 1 } },
  { body: "[]", path: "/v1/messages" },
  { path: "/v1/completions" }
]

attack({
  name: "a flood of refused requests is limited, leaves few records, and slows down nobody else",
  settings: { GATEWAY_REQUESTS_PER_KEY: "50", GATEWAY_REQUESTS_PER_KEY_BURST: "200" },
  run: (stage) =>
    Effect.forEach(
      Array.from({ length: 32 }, (_, index) => bodies[index % bodies.length] ?? {}),
      (request) => Effect.forever(Effect.andThen(sendRequest(stage, request), Effect.sleep("20 millis"))),
      { concurrency: "unbounded", discard: true }
    ),
  verify: ({ answers }, stage) =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const total = [...answers.values()].reduce((sum, count) => sum + count, 0)
      const [stored] = yield* sql<{ readonly refused: number; readonly minutes: number }>`
        SELECT count(*)::int AS refused, count(DISTINCT date_trunc('minute', created_at))::int AS minutes
        FROM requests WHERE org_id = ${stage.attacker.orgId} AND state = 'refused'`
      process.stdout.write(`  ${total} requests left ${stored?.refused} records in ${stored?.minutes} minutes\n`)
      assert.includeMembers(["400", "404", "415", "429"], [...answers.keys()])
      assert.isAbove(answers.get("429") ?? 0, 0)
      assert.isAtMost(stored?.refused ?? 0, 240 * (1 + (stored?.minutes ?? 0)))
      assert.isBelow(stored?.refused ?? 0, total / 4)
    })
})
