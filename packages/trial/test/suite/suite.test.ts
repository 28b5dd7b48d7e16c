import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { makeEngineClient } from "../../src/EngineClient.ts"
import type { Subject } from "../../src/Subject.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import { type Fault, fakeContext, faults, serveFakeEngine } from "./fakeEngine.ts"

const subjectAt = (url: string, change: Partial<Subject> = {}) =>
  Effect.map(
    makeEngineClient(url, "5 seconds"),
    (client): Subject => ({
      client,
      servedName: "acme/fake",
      maxContext: fakeContext,
      engineVersion: "fake-1.0.0",
      vocabSize: 1000,
      chat: true,
      card: "simulated x1",
      ...change
    })
  )

const trial = (fault?: Fault, change: Partial<Subject> = {}) =>
  Effect.gen(function* () {
    const { url } = yield* serveFakeEngine(fault)
    return yield* runSuite(yield* subjectAt(url, change))
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

/** The rows that each fault must fail, and no others. */
const kills: Record<Fault, ReadonlyArray<string>> = {
  "other name": ["engine_identity"],
  "other context": ["engine_identity"],
  "other version": ["engine_identity"],
  "usage one short": ["usage_exact", "context_edge", "still_alive"],
  "prompt counted otherwise when streamed": ["usage_exact"],
  "no usage chunk": ["usage_exact", "stream_equals_whole"],
  "always says stop": ["finish_reasons"],
  "never says stop": ["finish_reasons"],
  "last chunk lost": ["stream_equals_whole"],
  "no done": ["stream_equals_whole"],
  "says more after done": ["stream_equals_whole"],
  "two roles": ["stream_equals_whole"],
  "answers vary": ["stream_equals_whole", "greedy_repeats"],
  "answers vary under load": [],
  "every tenth answer varies": ["greedy_repeats"],
  "takes bad requests": ["bad_requests"],
  "breaks on bad requests": ["bad_requests"],
  "refuses without an error body": ["bad_requests"],
  "dies of a bad request": ["bad_requests"],
  "limit off by one": ["context_edge"],
  "cuts long prompts": ["context_edge"],
  "breaks at the limit": ["context_edge"],
  "something runs on": ["still_alive"],
  "every other request fails": ["usage_exact", "finish_reasons", "stream_equals_whole", "greedy_repeats", "bad_requests"]
}

describe("the suite", () => {
  it.live("passes a sound engine, and says what it did", () =>
    Effect.gen(function* () {
      const report = yield* trial()
      assert.deepStrictEqual(
        report.checks.filter(({ passed }) => !passed),
        []
      )
      assert.isTrue(report.passed)
      assert.match(report.checks.at(-1)?.detail ?? "", /^seatrial-core 0: 8 run, 0 not applicable, \d+ s$/)
      assert.isTrue(report.checks.every(({ detail }) => (detail ?? "").length <= 240))
    })
  )

  for (const fault of faults) {
    it.live(`an engine that ${fault} fails ${kills[fault].join(", ") || "nothing"}`, () =>
      Effect.gen(function* () {
        const report = yield* trial(fault)
        const failed = report.checks.filter(({ passed }) => !passed).map(({ name }) => name)
        assert.deepStrictEqual(
          kills[fault].filter((name) => !failed.includes(name)),
          []
        )
        // A fault that breaks every other request may or may not meet the remaining rows.
        if (fault !== "every other request fails") assert.deepStrictEqual(failed, kills[fault])
        assert.strictEqual(report.passed, failed.length === 0)
      })
    )
  }

  it.live("keeps fingerprints that anybody can repeat: SHA-256 over the content of a greedy answer of 64 tokens", () =>
    Effect.gen(function* () {
      const { url } = yield* serveFakeEngine()
      const subject = yield* subjectAt(url)
      const { fingerprint_card, fingerprints } = yield* runSuite(subject)
      assert.strictEqual(fingerprint_card, "simulated x1")
      assert.strictEqual(fingerprints.length, 6)
      for (const { prompt, sha256 } of fingerprints) {
        const messages = [{ role: "user", content: prompt }]
        const answer = yield* subject.client.ask("/v1/chat/completions", { model: "acme/fake", messages, temperature: 0, max_tokens: 64 })
        assert.strictEqual(createHash("sha256").update(answer.content).digest("hex"), sha256)
      }
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("keeps none of an engine whose answers change under load, without failing it", () =>
    Effect.gen(function* () {
      const { checks, fingerprint_card, fingerprints } = yield* trial("answers vary under load")
      assert.deepStrictEqual([fingerprints, fingerprint_card], [[], null])
      assert.match(checks.find(({ name }) => name === "greedy_repeats")?.detail ?? "", /^alone 6 of 6, under load [0-3] of 6$/)
    })
  )

  it.live("an engine that cannot be reached is no verdict", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9")
      assert.strictEqual((yield* Effect.flip(runSuite(subject)))._tag, "EngineUnreachable")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("a model without a chat template is asked to complete text", () =>
    Effect.map(trial(undefined, { chat: false }), ({ passed }) => assert.isTrue(passed))
  )
})
