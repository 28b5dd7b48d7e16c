import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { makeEngineClient } from "../../src/EngineClient.ts"
import type { TrialCheck } from "../../src/suite/Check.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import { put } from "../../src/suite/SuiteSubject.ts"
import { listenLocally } from "../listenLocally.ts"
import { subjectAt } from "../suite/subject.ts"

/** An engine whose answers do not come in time; its counter of tokens shows whether it computes. */
const serve = (isComputing: boolean) => {
  let tokens = 0
  return listenLocally(
    createServer((request, response) => {
      if (request.url === "/metrics") response.end(`vllm:generation_tokens_total ${isComputing ? tokens++ : 7}\n`)
    })
  )
}

/** A row of 0.3 s, which is stretched by four for a model of the size of the subject's. */
const row: TrialCheck = {
  name: "usage_exact",
  class: "required",
  purpose: "For a test",
  limitSeconds: () => 0.3,
  run: (subject) => Effect.as(put(subject, "Say yes.", { max_tokens: 1 }), "fine")
}

const outcomeOf = (isComputing: boolean) =>
  Effect.gen(function* () {
    const { url } = yield* serve(isComputing)
    const subject = yield* subjectAt(url)
    const client = yield* makeEngineClient({ url, timeout: "2 seconds", work: subject.metrics.work })
    return (yield* runSuite({ ...subject, client }, () => [row])).report.outcomes[0]
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

describe("an engine whose answers are late", () => {
  it.live("is slow if it computes, and hangs only if no token came and no counter moved", () =>
    Effect.gen(function* () {
      const [slow, hung] = yield* Effect.all([outcomeOf(true), outcomeOf(false)], { concurrency: "unbounded" })
      assert.deepInclude(slow, { outcome: "timeout", isComputing: true })
      assert.deepInclude(hung, { outcome: "hung", code: "engine_hung" })
    })
  )
})
