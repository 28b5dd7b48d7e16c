import { Clock, Effect, Fiber, Option } from "effect"
import { ask } from "../../e2e/chat.ts"
import type { EditStage } from "./EditStage.ts"

/** Longest time that conditions may differ from what callers get, milliseconds. */
const patienceMillis = 20_000

/** A request that takes longer counts as not answered, milliseconds. */
const answerMillis = 3_000

/** Something that broke a promise. */
interface Violation {
  readonly during: string
  readonly what: string
}

/**
 * A client that asks through the gateway throughout, and a reader that compares the condition `Ready` with its answers.
 * While `mayInterrupt` is set, requests may fail.
 */
export const watchTruth = Effect.fnUntraced(function* ({ caller, model, operatorExit, served }: EditStage) {
  const state = { during: "", mayInterrupt: false, answers: 0, isOver: false, askedAt: 0, isAnswered: true, ready: "True" }
  const violations: Array<Violation> = []
  const report = (what: string) => {
    if (violations.at(-1)?.what !== what) violations.push({ during: state.during, what })
  }
  const client = Effect.gen(function* () {
    while (!state.isOver) {
      const mayFail = state.mayInterrupt
      state.askedAt = yield* Clock.currentTimeMillis
      const { status, text } = yield* ask(caller, model)
      state.isAnswered = status === 200
      state.askedAt = Number.POSITIVE_INFINITY
      if (status === 200) state.answers++
      else if (!mayFail && !state.mayInterrupt) report(`a caller got ${status}: ${text.slice(0, 200)}`)
      yield* Effect.sleep("100 millis")
    }
  })
  const reader = Effect.gen(function* () {
    let agreedAt = yield* Clock.currentTimeMillis
    while (!state.isOver) {
      const now = yield* Clock.currentTimeMillis
      const ready = Option.getOrUndefined(yield* served)?.status?.conditions?.find(({ type }) => type === "Ready")
      state.ready = ready?.status ?? "none"
      if (now - state.askedAt > answerMillis) state.isAnswered = false
      if (ready === undefined || (ready.status === "True") === state.isAnswered) agreedAt = now
      if (now - agreedAt > patienceMillis) {
        report(
          `Ready was ${ready?.status} (${ready?.reason}: ${ready?.message}) for ${patienceMillis / 1_000} s while callers ${state.isAnswered ? "were" : "were not"} answered`
        )
        agreedAt = now
      }
      if (operatorExit() !== null) report(`the operator exited with ${operatorExit()}`)
      yield* Effect.sleep("250 millis")
    }
  })
  const fibers = yield* Effect.forkScoped(Effect.all([client, reader], { concurrency: "unbounded" }))
  return {
    state,
    violations,
    stop: Effect.suspend(() => {
      state.isOver = true
      return Fiber.join(fibers)
    })
  }
})
