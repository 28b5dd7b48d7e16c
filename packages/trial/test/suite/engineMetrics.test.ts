import { assert, describe, it } from "@effect/vitest"
import type { TrialMetrics } from "@seatrial/domain"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import type { TrialCheck } from "../../src/suite/Check.ts"
import { cacheHitEqual } from "../../src/suite/cacheHitEqual.ts"
import { stillAlive } from "../../src/suite/lifeChecks.ts"
import { subjectAt } from "./subject.ts"

/** The metrics of an engine that does not exist. */
const metrics: TrialMetrics = {
  requests: [{ name: "madeup:busy", label: 'state="open"' }],
  waiting: [],
  cacheUse: [],
  generatedTokens: [],
  preemptions: [],
  work: [],
  cacheConfig: { name: "madeup:cache", prefixCacheOff: 'reuse="no"', blockSizeLabel: "block" }
}

const answer = { choices: [{ message: { content: "yes" }, finish_reason: "length" }], usage: { prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 } }

/** What the check says about an engine that reports this text as its metrics. */
const tried = Effect.fnUntraced(function* (check: TrialCheck, text: string) {
  const subject = yield* subjectAt("http://127.0.0.1:9", { metrics })
  const client = {
    ...subject.client,
    get: () => Effect.succeed({ status: 200, text }),
    post: () => Effect.succeed({ status: 200, text: JSON.stringify(answer) })
  }
  return yield* check.run({ ...subject, client }).pipe(
    Effect.catchTags({
      Unexpected: ({ detail }) => Effect.succeed(`failed: ${detail}`),
      NotApplicable: ({ reason }) => Effect.succeed(`not applicable: ${reason}`)
    })
  )
}, Effect.provide(FetchHttpClient.layer))

describe("an engine that is known only by the metrics of its wire entry", () => {
  it.live("fails while a request runs under the name and the label of its metric, and passes if none does", () =>
    Effect.gen(function* () {
      const check = stillAlive(() => [])
      assert.strictEqual(yield* tried(check, 'madeup:busy{state="open"} 1\nmadeup:busy{state="open",rank="1"} 2\n'), "failed: 3 requests still run")
      assert.strictEqual(yield* tried(check, 'madeup:busy{state="closed"} 1\nvllm:num_requests_running 1\n'), "nothing runs")
    })
  )

  it.effect("is not tried for its prefix cache if its own labels say that the cache is off", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* tried(cacheHitEqual, 'madeup:cache{block="16",reuse="no"} 1\n'), "not applicable: prefix cache off")
      assert.match(yield* tried(cacheHitEqual, 'madeup:cache{block="16",reuse="yes"} 1\n'), /none reported as cached the second time/)
    })
  )
})
