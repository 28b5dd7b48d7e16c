import { assert, describe, it } from "@effect/vitest"
import { monotonicMillis } from "@seatrial/domain"
import { Deferred, Effect, Fiber, Ref } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import type { EngineClient } from "../../src/EngineClient.ts"
import { EngineUnreachable, Unexpected } from "../../src/engineAnswers.ts"
import { NotApplicable, type TrialCheck } from "../../src/suite/Check.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { suiteChecks } from "../../src/suite/suiteChecks.ts"
import { suite } from "../../src/suite/suiteVersion.ts"
import { subjectAt } from "./subject.ts"

const subject = subjectAt("http://127.0.0.1:9").pipe(Effect.provide(FetchHttpClient.layer))

const check = (name: string, run: TrialCheck["run"], more: Partial<TrialCheck> = {}): TrialCheck => ({
  name,
  class: "required",
  purpose: "For a test",
  limitSeconds: () => 10,
  run,
  ...more
})
const passes = (name: string, more: Partial<TrialCheck> = {}) => check(name, () => Effect.succeed("fine"), more)
const wrong = (detail: string) => Effect.fail(new Unexpected({ detail }))
const trial = (...checks: ReadonlyArray<TrialCheck>) => Effect.flatMap(subject, (tried) => runSuite(tried, () => checks))
/** Fails the first time and passes the second. */
const once = (name: string, more: Partial<TrialCheck> = {}) =>
  Effect.map(Ref.make(0), (turns) =>
    check(
      name,
      () =>
        Effect.flatMap(
          Ref.updateAndGet(turns, (n) => n + 1),
          (turn) => (turn === 1 ? wrong("3 of 4") : Effect.succeed("4 of 4"))
        ),
      more
    )
  )

describe("how the suite is run", () => {
  it.effect("a check that fails twice reports its first finding, and the other checks still run", () =>
    Effect.gen(function* () {
      const { report } = yield* trial(
        check("bad", () => wrong("1 of 2")),
        passes("good")
      )
      assert.isFalse(report.passed)
      assert.deepStrictEqual(report.checks.slice(0, 2), [
        { name: "bad", passed: false, detail: "1 of 2" },
        { name: "good", passed: true, detail: "fine" }
      ])
      assert.strictEqual(report.checks.at(-1)?.detail, `${suite.name} ${suite.version}: 2 run, 0 not applicable, 0 s`)
    })
  )

  it.effect("a check that passes only the second attempt fails, unless it depends on elapsed time", () =>
    Effect.gen(function* () {
      const { report } = yield* trial(yield* once("steady"), yield* once("timed", { clockBound: true }))
      assert.deepStrictEqual(report.checks.slice(0, 2), [
        { name: "steady", passed: false, detail: "nondeterministic_output: failed, then passed (3 of 4)" },
        { name: "timed", passed: true, detail: "4 of 4; on the second attempt" }
      ])
    })
  )

  it.effect("an HTTP 5xx that does not repeat is a failure of the engine, not a changed answer", () =>
    Effect.gen(function* () {
      const turns = yield* Ref.make(0)
      const broken = check("steady", () =>
        Effect.flatMap(
          Ref.updateAndGet(turns, (n) => n + 1),
          (turn) => (turn === 1 ? Effect.fail(new Unexpected({ detail: "HTTP 503 for a good request", status: 503 })) : Effect.succeed("4 of 4"))
        )
      )
      const { report } = yield* trial(broken)
      assert.isFalse(report.passed)
      assert.deepStrictEqual(report.checks[0], { name: "steady", passed: false, detail: "engine error, then passed (HTTP 503 for a good request)" })
      assert.deepStrictEqual(report.outcomes, [
        { name: "steady", class: "required", outcome: "engine_error", isReproduced: false, detail: "engine error, then passed (HTTP 503 for a good request)" }
      ])
    })
  )

  it.effect("a failed capability is withdrawn, an informing check is reported, and neither fails the run", () =>
    Effect.gen(function* () {
      const { report } = yield* trial(
        check("json_mode", () => wrong("1 of 2"), { class: "capability" }),
        check("reported", () => wrong("slow"), { class: "informs" })
      )
      assert.deepStrictEqual([report.passed, report.withdrawn], [true, ["json_mode"]])
      assert.deepStrictEqual(
        report.checks.map(({ passed }) => passed),
        [false, false, true]
      )
    })
  )

  it.effect("an HTTP 5xx during an informing check fails the run", () =>
    Effect.gen(function* () {
      const broken = check("informing", () => Effect.fail(new Unexpected({ detail: "HTTP 500 for a good request", status: 500 })), { class: "informs" })
      assert.isFalse((yield* trial(broken)).report.passed)
    })
  )

  it.effect("a check that does not apply has no row, and the last row names it", () =>
    Effect.gen(function* () {
      const { report } = yield* trial(
        passes("images", { skipped: () => "text only" }),
        check("scores", () => Effect.fail(new NotApplicable({ reason: "not reported" }))),
        passes("good")
      )
      assert.deepStrictEqual(
        report.checks.map(({ name }) => name),
        ["good", "suite"]
      )
      assert.strictEqual(report.checks.at(-1)?.detail, `${suite.name} ${suite.version}: 1 run, 2 not applicable (images, scores), 0 s`)
    })
  )

  it.effect("a capability that a check could not confirm is withdrawn, without a failure", () =>
    Effect.gen(function* () {
      const { report } = yield* trial(check("stop_strings", () => Effect.fail(new NotApplicable({ reason: "too short", unseen: true }))))
      assert.deepStrictEqual([report.passed, report.withdrawn], [true, ["stop_strings"]])
      assert.include(report.checks.at(-1)?.detail, "1 not confirmed, so not served (stop_strings)")
    })
  )

  /** Trials of an engine that cannot be asked how fast it is; `answer` is what comes of a question, and `lastSignAt` when it last computed. */
  const engineThat = (answer: EngineClient["post"], lastSignAt: EngineClient["lastSignAt"], ...checks: ReadonlyArray<TrialCheck>) =>
    Effect.flatMap(subject, (tried) => runSuite({ ...tried, client: { ...tried.client, post: answer, lastSignAt } }, () => checks))
  const stuck = (name: string, more: Partial<TrialCheck> = {}) => check(name, () => Effect.never, more)
  const answerBody = JSON.stringify({ choices: [{ message: { content: "Yes" } }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })
  const answers = () => Effect.succeed({ status: 200, text: answerBody })

  it.effect("an engine that still computes at a timeout is slow, and limits are extended for models on a CPU", () =>
    Effect.gen(function* () {
      const fibre = yield* Effect.forkChild(engineThat(answers, monotonicMillis, stuck("stuck"), passes("good")))
      yield* TestClock.adjust("79 seconds")
      assert.isUndefined(fibre.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const { report } = yield* Fiber.join(fibre)
      assert.isFalse(report.passed)
      assert.deepStrictEqual(report.checks[0], { name: "stuck", passed: false, detail: "not done within 40 s, while the engine computed" })
      assert.deepStrictEqual(report.outcomes, [
        { name: "stuck", class: "required", outcome: "timeout", isComputing: true, detail: "not done within 40 s, while the engine computed" },
        { name: "good", class: "required", outcome: "passed" }
      ])
    })
  )

  it.effect("an engine that computes nothing for one check but answers others has not hung, and is not slow", () =>
    Effect.gen(function* () {
      const fibre = yield* Effect.forkChild(engineThat(answers, Effect.succeed(Number.NEGATIVE_INFINITY), stuck("stuck")))
      yield* TestClock.adjust("80 seconds")
      const { report } = yield* Fiber.join(fibre)
      assert.deepStrictEqual(report.checks[0], { name: "stuck", passed: false, detail: "not done within 40 s, and no token came" })
      assert.deepStrictEqual(report.outcomes, [
        { name: "stuck", class: "required", outcome: "timeout", isComputing: false, detail: "not done within 40 s, and no token came" }
      ])
    })
  )

  it.effect("an engine that computes nothing and answers no other request has hung, even if the check's limit is short", () =>
    Effect.gen(function* () {
      const silent = () => Effect.delay(Effect.fail(new EngineUnreachable({ message: "Silent.", silentFor: 60 })), "60 seconds")
      const fibre = yield* Effect.forkChild(engineThat(silent, Effect.succeed(Number.NEGATIVE_INFINITY), stuck("stuck")))
      yield* TestClock.adjust("140 seconds")
      const { report } = yield* Fiber.join(fibre)
      assert.deepStrictEqual(report.outcomes, [
        { name: "stuck", class: "required", outcome: "hung", code: "engine_hung", detail: "no answer and no token within 60 s" }
      ])
    })
  )

  it.effect("the suite stops if the engine is too slow for two required checks", () =>
    Effect.gen(function* () {
      const rows = [stuck("one"), stuck("two"), passes("last"), passes("json_mode", { class: "capability" })]
      const fibre = yield* Effect.forkChild(engineThat(answers, monotonicMillis, ...rows))
      yield* TestClock.adjust("160 seconds")
      const { report } = yield* Fiber.join(fibre)
      assert.isFalse(report.passed)
      assert.strictEqual(
        report.checks.at(-1)?.detail,
        `${suite.name} ${suite.version}: 2 run, 0 not applicable, 1 not confirmed, so not served (json_mode), 1 not reached (last), 160 s`
      )
    })
  )

  const lateFirst = (then: Effect.Effect<string, Unexpected | NotApplicable>) =>
    Effect.gen(function* () {
      const turns = yield* Ref.make(0)
      const slow = check("slow", () =>
        Effect.flatMap(
          Ref.updateAndGet(turns, (n) => n + 1),
          (turn) => (turn === 1 ? Effect.never : then)
        )
      )
      const fibre = yield* Effect.forkChild(trial(slow))
      yield* TestClock.adjust("40 seconds")
      return (yield* Fiber.join(fibre)).report
    })

  it.effect("a check that times out and then does not apply has no row", () =>
    Effect.gen(function* () {
      const report = yield* lateFirst(Effect.fail(new NotApplicable({ reason: "it would take 40 s" })))
      assert.isTrue(report.passed)
      assert.deepStrictEqual(
        report.checks.map(({ detail, name }) => [name, detail]),
        [["suite", `${suite.name} ${suite.version}: 0 run, 1 not applicable (slow), 40 s`]]
      )
    })
  )

  it.effect("a check that times out and then finds a fault reports the fault", () =>
    Effect.gen(function* () {
      const { checks, passed } = yield* lateFirst(Effect.fail(new Unexpected({ detail: "1 of 4", code: "cross_request_leak" })))
      assert.isFalse(passed)
      assert.deepStrictEqual(checks[0], { name: "slow", passed: false, detail: "cross_request_leak: 1 of 4" })
    })
  )

  it.effect("a check that times out only on the first attempt passes", () =>
    Effect.gen(function* () {
      const turns = yield* Ref.make(0)
      const slow = check("slow", () =>
        Effect.flatMap(
          Ref.updateAndGet(turns, (n) => n + 1),
          (turn) => (turn === 1 ? Effect.never : Effect.succeed("4 of 4"))
        )
      )
      const fibre = yield* Effect.forkChild(trial(slow))
      yield* TestClock.adjust("1 minute")
      const { report } = yield* Fiber.join(fibre)
      assert.deepStrictEqual(report.checks[0], { name: "slow", passed: true, detail: "4 of 4; on the second attempt" })
    })
  )

  it.effect("a check that ran out of time while the engine computed has the longest limit on its second attempt, and else the same one", () =>
    Effect.gen(function* () {
      const slow = check("slow", () => Effect.delay(Effect.succeed("4 of 4"), "35 seconds"))
      const tried = Effect.fnUntraced(function* (lastSignAt: EngineClient["lastSignAt"]) {
        // Its limits are not extended at first.
        const { client, ...large } = { ...(yield* subject), parameters: 10_000_000 }
        const fibre = yield* Effect.forkChild(runSuite({ ...large, client: { ...client, post: answers, lastSignAt } }, () => [slow]))
        yield* TestClock.adjust("1 minute")
        return (yield* Fiber.join(fibre)).report.checks[0]?.detail
      })
      assert.strictEqual(yield* tried(monotonicMillis), "4 of 4; on the second attempt")
      assert.strictEqual(yield* tried(Effect.succeed(Number.NEGATIVE_INFINITY)), "not done within 10 s, and no token came")
    })
  )

  it.effect("a feature that is missing on the chat route is not reported again for a path", () =>
    Effect.gen(function* () {
      const isClaimed = ({ capabilities }: SuiteSubject) => (capabilities.tool_calling.single_call ? null : "not claimed")
      const bad = check("tool_single", () => wrong("2 calls"), { class: "capability", skipped: isClaimed })
      const held = passes("responses_tool_single", { class: "capability", usesConfirmedFeatures: true, skipped: isClaimed })
      const { report } = yield* trial(bad, held, passes("other", { skipped: isClaimed }))
      assert.deepStrictEqual(
        report.checks.slice(0, -1).map(({ name }) => name),
        ["tool_single", "other"]
      )
      assert.deepStrictEqual(report.withdrawn, ["tool_single"])
    })
  )

  it.effect("after its budget the suite starts only required checks and withdraws unconfirmed capabilities", () =>
    Effect.gen(function* () {
      const slow = check("slow", () => Effect.as(Effect.sleep("2401 seconds"), "done"), { limitSeconds: () => 700 })
      const fibre = yield* Effect.forkChild(trial(slow, passes("json_mode", { class: "capability" }), passes("last")))
      yield* TestClock.adjust("3 hours")
      const { report } = yield* Fiber.join(fibre)
      assert.deepStrictEqual([report.passed, report.withdrawn], [true, ["json_mode"]])
      assert.strictEqual(
        report.checks.at(-1)?.detail,
        `${suite.name} ${suite.version}: 2 run, 0 not applicable, 1 not confirmed, so not served (json_mode), 2401 s`
      )
    })
  )

  it.effect("if its time is over before a verdict, the model has no fault, unless a check found one", () =>
    Effect.gen(function* () {
      const slow = check("slow", () => Effect.as(Effect.sleep("3599 seconds"), "done"), { limitSeconds: () => 3_000 })
      const second = check("second", () => Effect.as(Effect.sleep("5 seconds"), "done"))
      const none = yield* Effect.forkChild(
        Effect.flip(
          trial(
            slow,
            check("second", () => Effect.as(Effect.sleep("1 second"), "done")),
            passes("last")
          )
        )
      )
      const cut = yield* Effect.forkChild(Effect.flip(trial(slow, second)))
      const running = yield* Effect.forkChild(
        trial(
          check("bad", () => wrong("1 of 2")),
          slow,
          second,
          passes("last")
        )
      )
      yield* TestClock.adjust("10 hours")
      assert.strictEqual((yield* Fiber.join(none))._tag, "SuiteTimedOut")
      assert.strictEqual((yield* Fiber.join(cut))._tag, "SuiteTimedOut")
      const { report } = yield* Fiber.join(running)
      assert.deepStrictEqual(report.checks[0], { name: "bad", passed: false, detail: "1 of 2" })
      assert.match(report.checks.at(-1)?.detail ?? "", /2 not reached \(second, last\)/)
      assert.isFalse(report.passed)
    })
  )

  it.effect("an interruption stops the suite and its current check", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const stopped = yield* Ref.make(false)
      const busy = check("busy", () =>
        Deferred.succeed(begun, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Ref.set(stopped, true))
        )
      )
      const fibre = yield* Effect.forkChild(trial(busy))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fibre)
      assert.isTrue(yield* Ref.get(stopped))
    })
  )

  it.effect("an unreachable engine is not a verdict, whatever was found before", () =>
    Effect.gen(function* () {
      const away = check("away", () => Effect.fail(new EngineUnreachable({ message: "Away." })))
      assert.strictEqual(
        (yield* Effect.flip(
          trial(
            check("bad", () => wrong("1 of 2")),
            away
          )
        ))._tag,
        "EngineUnreachable"
      )
    })
  )

  it.effect("an engine that accepts connections and does not answer has hung; late answers pass", () =>
    Effect.gen(function* () {
      const silent = Effect.fail(new EngineUnreachable({ message: "Silent.", silentFor: 60 }))
      const { report } = yield* trial(
        check("bad", () => wrong("1 of 2")),
        check("hangs", () => silent)
      )
      assert.deepStrictEqual(report.checks.slice(0, 2), [
        { name: "bad", passed: false, detail: "1 of 2" },
        { name: "hangs", passed: false, detail: "engine_hung: no answer and no token within 60 s" }
      ])
      assert.deepStrictEqual(report.outcomes[1], {
        name: "hangs",
        class: "required",
        outcome: "hung",
        code: "engine_hung",
        detail: "no answer and no token within 60 s"
      })
      const turns = yield* Ref.make(0)
      const late = Effect.flatMap(
        Ref.updateAndGet(turns, (n) => n + 1),
        (turn) => (turn === 1 ? silent : Effect.succeed("4 of 4"))
      )
      assert.isTrue((yield* trial(check("late", () => late))).report.passed)
    })
  )

  it.effect("each attempt has a separate prefix cache, and no detail is longer than 240 characters", () =>
    Effect.gen(function* () {
      const salts = yield* Ref.make<ReadonlyArray<string>>([])
      const salted = (name: string) =>
        check(name, ({ salt }) =>
          Effect.andThen(
            Ref.update(salts, (all) => [...all, salt]),
            wrong("x".repeat(500))
          )
        )
      const { report } = yield* trial(salted("one"), salted("two"))
      const used = yield* Ref.get(salts)
      assert.deepStrictEqual([used.length, new Set(used).size], [4, 4])
      assert.isTrue(report.checks.every(({ detail = "" }) => detail.length <= 240))
    })
  )

  it("every check has a unique name, a purpose and a limit", () => {
    const rows = suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null })
    assert.strictEqual(new Set(rows.map(({ name }) => name)).size, rows.length)
    assert.isTrue(rows.every(({ name, purpose }) => /^[a-z_]+$/.test(name) && purpose.length > 20))
  })
})
