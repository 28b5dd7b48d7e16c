import { monotonicMillis } from "@seatrial/domain"
import { Data, Effect, Result } from "effect"
import type { EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import type { NotApplicable, TrialCheck } from "./Check.ts"
import { Finding } from "./finding.ts"
import { put, type SuiteSubject } from "./SuiteSubject.ts"
import { saltOf } from "./saltOf.ts"
import { thresholds } from "./thresholds.ts"

/** The time of the suite was over before it had a verdict. No fault of the model was found. */
export class SuiteTimedOut extends Data.TaggedError("SuiteTimedOut")<{ readonly message: string }> {}

/** A check exceeded its time limit. `isComputing`: whether tokens still came, or token counters moved. */
class CheckTimedOut extends Data.TaggedError("CheckTimedOut")<{ readonly seconds: number; readonly isComputing: boolean }> {}

/** The engine accepts connections, but sent no token and moved no counter for this many seconds. */
class EngineHung extends Data.TaggedError("EngineHung")<{ readonly seconds: number }> {}

/** A failure that says something about the engine. */
type Fault = Unexpected | CheckTimedOut | EngineHung
type Failure = Fault | NotApplicable | SuiteTimedOut
type Attempt = Result.Result<string, Failure>

export type CheckResult =
  | { readonly _tag: "Judged"; readonly finding: Finding }
  | { readonly _tag: "NotApplicable"; readonly isUnseen: boolean; readonly reason: string }
  | { readonly _tag: "OutOfTime"; readonly error: SuiteTimedOut }

/** The time limits of a suite and its checks. */
export interface SuiteClock {
  /** The factor by which the time limits of checks are extended. */
  readonly stretch: number
  /** Seconds after which the suite ends without a verdict. */
  readonly hardSeconds: number
  /** Seconds since the suite began. */
  readonly elapsed: Effect.Effect<number>
  /** Separates the prefix cache of this suite from other runs. */
  readonly salt: string
}

/** The error of a suite that has no time left for a check. */
export const outOfTime = ({ hardSeconds }: SuiteClock, { name }: TrialCheck) =>
  new SuiteTimedOut({
    message: `The checks took longer than ${Math.round(hardSeconds)} s; ${name} was not run. Use a faster host class, or a node with free CPU time.`
  })

const keep = (failure: Failure) => Effect.succeed<Attempt>(Result.fail(failure))

/**
 * Runs a check or a part of it. Fails only if the engine cannot be reached. An engine that accepts connections but
 * stays silent has hung.
 */
const attempt = (run: Effect.Effect<string, Failure | EngineUnreachable>): Effect.Effect<Attempt, EngineUnreachable> =>
  run.pipe(
    Effect.map((detail): Attempt => Result.succeed(detail)),
    Effect.catchTags({
      EngineUnreachable: (error) => (error.silentFor === undefined ? Effect.fail(error) : keep(new EngineHung({ seconds: error.silentFor }))),
      Unexpected: keep,
      NotApplicable: keep,
      SuiteTimedOut: keep,
      CheckTimedOut: keep,
      EngineHung: keep
    })
  )

const runOnce = (check: TrialCheck, subject: SuiteSubject, clock: SuiteClock, turn: number): Effect.Effect<Attempt, EngineUnreachable> =>
  Effect.gen(function* () {
    const limit = check.limitSeconds(subject) * clock.stretch
    const left = Math.max(0, clock.hardSeconds - (yield* clock.elapsed))
    const begunAt = yield* monotonicMillis
    const late = Effect.flatMap(subject.client.lastSignAt, (at) => Effect.fail(new CheckTimedOut({ seconds: Math.round(limit), isComputing: at > begunAt })))
    const run = check.run({ ...subject, salt: saltOf(clock.salt, check.name, turn) }).pipe(
      Effect.timeoutOrElse({
        duration: `${Math.min(limit, left)} seconds`,
        // If the suite's limit cut the check short, the suite is out of time, not the check.
        orElse: (): Effect.Effect<never, SuiteTimedOut | CheckTimedOut> => (left < limit ? Effect.fail(outOfTime(clock, check)) : late)
      })
    )
    return yield* attempt(run)
  })

/** After a check without any answer: whether the engine answers a minimal request. If it does not, it has hung. */
const answersAtAll = (check: TrialCheck, subject: SuiteSubject, clock: SuiteClock, late: CheckTimedOut): Effect.Effect<Attempt, EngineUnreachable> =>
  Effect.gen(function* () {
    const left = Math.max(0, clock.hardSeconds - (yield* clock.elapsed))
    const asking = put({ ...subject, salt: saltOf(clock.salt, check.name, "alive") }, "Say yes.", { max_tokens: 1 }).pipe(
      Effect.timeoutOrElse({ duration: `${left} seconds`, orElse: () => Effect.fail(outOfTime(clock, check)) }),
      Effect.as("")
    )
    const answered = yield* attempt(asking)
    const isVerdict = Result.isFailure(answered) && (answered.failure._tag === "EngineHung" || answered.failure._tag === "SuiteTimedOut")
    return isVerdict ? answered : Result.fail(late)
  })

/**
 * Whether the second attempt decides: the first one only ran out of time, or it measured a share that is judged over
 * both attempts.
 */
const isOpen = (failure: Failure): boolean =>
  failure._tag === "CheckTimedOut" || failure._tag === "EngineHung" || (failure._tag === "Unexpected" && failure.open === true)

const judged = (finding: Finding): CheckResult => ({ _tag: "Judged", finding })

const failed = (failure: Fault): CheckResult => {
  switch (failure._tag) {
    case "EngineHung":
      return judged(Finding.Hung({ seconds: failure.seconds }))
    case "CheckTimedOut":
      return judged(Finding.TimedOut({ seconds: failure.seconds, isComputing: failure.isComputing }))
    case "Unexpected":
      return judged(Finding.Failed({ failure }))
  }
}

/** The result of a check that does not apply, or for which the suite has no time. */
const withoutVerdict = (failure: NotApplicable | SuiteTimedOut): CheckResult =>
  failure._tag === "NotApplicable"
    ? { _tag: "NotApplicable", isUnseen: failure.unseen === true, reason: failure.reason }
    : { _tag: "OutOfTime", error: failure }

const isNoVerdict = (failure: Failure): failure is NotApplicable | SuiteTimedOut => failure._tag === "NotApplicable" || failure._tag === "SuiteTimedOut"

/**
 * The second attempt. If the engine computed during the first one until its time was over, the second one has the
 * longest limit, because it would end in the same way. If both ran out of time and nothing was computed, the engine is
 * asked whether it answers at all.
 */
const runAgain = Effect.fnUntraced(function* (check: TrialCheck, subject: SuiteSubject, clock: SuiteClock, before: Fault) {
  const isSlow = before._tag === "CheckTimedOut" && before.isComputing
  const second = yield* runOnce(check, subject, isSlow ? { ...clock, stretch: Math.max(clock.stretch, thresholds.mostStretch) } : clock, 2)
  if (Result.isSuccess(second) || before._tag === "Unexpected") return second
  const { failure } = second
  return failure._tag === "CheckTimedOut" && !failure.isComputing ? yield* answersAtAll(check, subject, clock, failure) : second
})

/** The result of a check that failed and then passed. */
const passedAgain = (check: TrialCheck, before: Fault, measured: string): CheckResult => {
  if (check.clockBound === true || isOpen(before)) return judged(Finding.Passed({ measured, attempts: 2 }))
  return before._tag === "Unexpected" ? judged(Finding.Flaky({ failure: before })) : failed(before)
}

/** The result of a check that failed twice. */
const failedAgain = (before: Fault, after: Failure): CheckResult => {
  if (!isOpen(before)) return failed(before)
  if (isNoVerdict(after)) return withoutVerdict(after)
  // A share that was judged remains the result, unless the second attempt found a fault. Of two timeouts the second has
  // more evidence.
  return failed(before._tag === "Unexpected" && isOpen(after) ? before : after)
}

/**
 * Runs a check, and a second time if it failed. Passing the second attempt is still a failure, unless the check depends
 * on elapsed time, only ran out of time (an engine may have to prepare its first use of a feature), or judges a share
 * over both attempts.
 */
export const tryCheck = Effect.fnUntraced(function* (
  check: TrialCheck,
  subject: SuiteSubject,
  clock: SuiteClock
): Effect.fn.Return<CheckResult, EngineUnreachable> {
  const first = yield* runOnce(check, subject, clock, 1)
  if (Result.isSuccess(first)) return judged(Finding.Passed({ measured: first.success, attempts: 1 }))
  const before = first.failure
  if (isNoVerdict(before)) return withoutVerdict(before)
  const second = yield* runAgain(check, subject, clock, before)
  return Result.isSuccess(second) ? passedAgain(check, before, second.success) : failedAgain(before, second.failure)
})
