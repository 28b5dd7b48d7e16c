import { assert, it } from "@effect/vitest"
import { NotFound, Unavailable } from "@seatrial/api"
import type { DeploymentDetail, DeploymentProgress, Phase } from "@seatrial/domain"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Unreachable } from "../src/index.ts"
import { type Away, type WaitOptions, waitUntilFinished } from "../src/waitForDeployment.ts"

const at = "2026-01-02T03:04:05.006Z"

const detail = (phases: ReadonlyArray<Phase>): DeploymentDetail => {
  const status = phases.at(-1) ?? "screening"
  return {
    id: "dep_x",
    object: "deployment",
    model_id: "mdl_x",
    model: "acme/x",
    status,
    failure_detail: status === "failed" ? "checks_failed: 1 of 9" : null,
    created_at: at,
    updated_at: at,
    ended_at: null,
    revision_id: null,
    hf_revision: null,
    started_by_user_id: null,
    phases: phases.map((phase) => ({ status: phase, at })),
    checks: [],
    revision: null
  }
}

const away = new Unreachable({ message: "No." })
const missing = new NotFound({ error: { message: "No.", type: "not_found_error", code: "not_found" } })
type Answer = ReadonlyArray<Phase> | Away | NotFound

/** Waits for a server that gives these responses in order and then repeats the last one. */
const follow = Effect.fnUntraced(function* (answers: ReadonlyArray<Answer>, options: WaitOptions = {}, length = 3_600_000, knowsProgress = true) {
  const phases: Array<Phase> = []
  const pollTimes: Array<number> = []
  const answer = Effect.gen(function* () {
    pollTimes.push(yield* Clock.currentTimeMillis)
    const next = answers[Math.min(pollTimes.length, answers.length) - 1] ?? []
    return "_tag" in next ? yield* Effect.fail(next) : detail(next)
  })
  const onPhase = (entry: { readonly status: Phase }) => Effect.sync(() => phases.push(entry.status))
  const progress = Effect.map(Clock.currentTimeMillis, (now): DeploymentProgress => {
    const minutes = Math.floor(now / 60_000)
    const updated_at = new Date(minutes * 60_000).toISOString()
    return { deployment_id: "dep_x", object: "deployment_progress", status: "probing", message: `${minutes} min.`, queue: null, download: null, updated_at }
  })
  const fiber = yield* Effect.forkChild(Effect.result(waitUntilFinished(answer, knowsProgress ? progress : Effect.fail(missing), { onPhase, ...options })))
  yield* TestClock.adjust(length)
  return { phases, pauses: pollTimes.slice(1).map((time, index) => time - (pollTimes[index] ?? 0)), result: yield* Fiber.join(fiber) }
})

it.effect("each phase is reported once and in order, also if it is entered again, and the outcome is typed", () =>
  Effect.gen(function* () {
    const first: ReadonlyArray<Phase> = ["screening", "queued", "provisioning"]
    const last: ReadonlyArray<Phase> = [...first, "queued", "provisioning", "booting", "checking", "activating", "activated"]
    const { result, phases } = yield* follow([["screening"], first, first, [...first, "queued"], last])
    assert.deepStrictEqual(phases, last)
    assert.isTrue(result._tag === "Success" && result.success.outcome === "activated")
  })
)

it.effect("a failed run reports why, and a canceled run that it was canceled", () =>
  Effect.gen(function* () {
    const failed = (yield* follow([["screening", "checking", "failed"]])).result
    assert.isTrue(failed._tag === "Success" && failed.success.outcome === "failed" && failed.success.failure === "checks_failed: 1 of 9")
    const cancelled = (yield* follow([["screening", "cancelled"]])).result
    assert.isTrue(cancelled._tag === "Success" && cancelled.success.outcome === "cancelled")
  })
)

it.effect("polls less and less often, at most every 5 s, and soon after a new phase", () =>
  Effect.gen(function* () {
    const still = Array.from({ length: 12 }, (): ReadonlyArray<Phase> => ["screening"])
    const { pauses } = yield* follow([...still, ["screening", "queued"], ["screening", "queued"], ["screening", "cancelled"]])
    assert.strictEqual(pauses[0], 250)
    assert.deepStrictEqual(pauses.slice(8, 12), [5000, 5000, 5000, 5000])
    assert.strictEqual(pauses[12], 250)
  })
)

it.effect("continues if the server is unavailable, and waits as long as the server asks", () =>
  Effect.gen(function* () {
    const messages: Array<string> = []
    const unavailable = new Unavailable({ error: { message: "Away.", type: "api_error", code: "unavailable" }, retryAfter: 30 })
    const { pauses, result, phases } = yield* follow([["screening"], away, unavailable, away, ["screening", "activated"]], {
      onAway: ({ _tag }) => Effect.sync(() => messages.push(_tag))
    })
    assert.isTrue(result._tag === "Success" && result.success.outcome === "activated")
    assert.deepStrictEqual(phases, ["screening", "activated"])
    assert.deepStrictEqual(messages, ["Unreachable", "Unavailable", "Unreachable"])
    assert.strictEqual(pauses[2], 30_000)
  })
)

it.effect("fails if the server is unavailable for longer than the patience, and immediately on any other error", () =>
  Effect.gen(function* () {
    const gone = yield* follow([["screening"], away], { patience: 60_000 })
    assert.isTrue(gone.result._tag === "Failure" && gone.result.failure instanceof Unreachable)
    assert.isAtLeast(
      gone.pauses.reduce((sum, pause) => sum + pause, 0),
      60_000
    )
    const none = yield* follow([missing])
    assert.isTrue(none.result._tag === "Failure" && none.result.failure instanceof NotFound)
  })
)

it.effect("progress is reported with each change, and a server without the operation is not a failure", () =>
  Effect.gen(function* () {
    const answers = [...Array.from({ length: 60 }, (): ReadonlyArray<Phase> => ["queued"]), ["queued", "activated"]] satisfies ReadonlyArray<Answer>
    for (const knowsProgress of [true, false]) {
      const messages: Array<string> = []
      const onProgress = ({ message }: DeploymentProgress) => Effect.sync(() => messages.push(message))
      const { result } = yield* follow(answers, { onProgress }, 3_600_000, knowsProgress)
      assert.isTrue(result._tag === "Success" && result.success.outcome === "activated")
      if (knowsProgress) assert.deepStrictEqual(messages.slice(-2), ["3 min.", "4 min."])
      else assert.deepStrictEqual(messages, [])
    }
  })
)
