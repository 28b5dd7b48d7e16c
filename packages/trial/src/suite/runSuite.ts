import { type Check, type CheckOutcome, type CheckReport, monotonicMillis, withdrawCapabilities } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import type { EngineUnreachable } from "../engineAnswers.ts"
import type { CheckClass, TrialCheck } from "./Check.ts"
import { type Finding, outcomeOf, rowDetail } from "./finding.ts"
import { mayThink, questionOf, type SuiteSubject, thinksAnyway } from "./SuiteSubject.ts"
import { saltOf } from "./saltOf.ts"
import { type SuiteState, suiteChecks } from "./suiteChecks.ts"
import { suite } from "./suiteVersion.ts"
import { row, summaryRow } from "./summaryRow.ts"
import { thresholds, tinyParameters } from "./thresholds.ts"
import { type CheckResult, outOfTime, type SuiteClock, type SuiteTimedOut, tryCheck } from "./tryCheck.ts"

/** The result of the suite. `likelihood` is stored for later trials. */
export interface SuiteFindings {
  readonly report: CheckReport
  readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null
  /** How long the suite took. */
  readonly seconds: number
}

/** The factor by which time limits are extended for an engine with slow tokens, measured with one answer. */
const stretchOf = Effect.fnUntraced(function* (subject: SuiteSubject) {
  if (subject.parameters < tinyParameters) return thresholds.mostStretch
  const max_tokens = Math.min(16, Math.max(2, Math.floor(subject.maxContext / 8)))
  const answer = yield* Effect.option(
    Effect.catchTag(subject.client.stream(...questionOf(subject, "Hello", { max_tokens, ignore_eos: true })), "Unexpected", () => Effect.fail("unread"))
  )
  if (answer._tag === "None") return 1
  const { arrivals, usage } = answer.value
  const millis = (arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)
  const perToken = usage.completion_tokens < 2 ? 0 : millis / (usage.completion_tokens - 1)
  return Math.min(thresholds.mostStretch, Math.max(1, perToken / thresholds.usualTokenMillis))
})

/** Collects the rows and outcomes of a suite. */
class SuiteRecord {
  readonly rows: Array<Check> = []
  readonly outcomes: Array<CheckOutcome> = []
  readonly #unseen: Array<string> = []

  take(check: TrialCheck, result: CheckResult): void {
    switch (result._tag) {
      case "Judged":
        this.#judge(check, result.finding)
        break
      case "NotApplicable":
        this.#notApplicable(check, result)
        break
      case "OutOfTime":
        this.#notReached(check)
        break
    }
  }

  #judge(check: TrialCheck, finding: Finding): void {
    const { detail, outcome } = outcomeOf(finding, check)
    const { code } = outcome
    this.rows.push(row(check.name, outcome.outcome === "passed", code === undefined ? detail : `${code}: ${detail}`))
    // An engine that fails or hangs is at fault, regardless of the check.
    const isFault = outcome.outcome === "engine_error" || outcome.outcome === "hung"
    this.outcomes.push({ name: check.name, class: check.class === "informs" && isFault ? "required" : check.class, ...outcome })
  }

  #notApplicable(check: TrialCheck, { isUnseen, reason }: Extract<CheckResult, { readonly _tag: "NotApplicable" }>): void {
    this.outcomes.push({ name: check.name, class: check.class, outcome: "not_applicable", detail: rowDetail(reason) })
    if (isUnseen) this.#unseen.push(check.name)
  }

  #notReached(check: TrialCheck): void {
    this.outcomes.push({ name: check.name, class: check.class, outcome: "not_reached" })
  }

  #failed(of: CheckClass): ReadonlyArray<CheckOutcome> {
    return this.outcomes.filter(({ class: each, outcome }) => each === of && outcome !== "passed" && outcome !== "not_applicable")
  }

  /** Names of capability checks that did not confirm their capability. */
  get withdrawn(): ReadonlyArray<string> {
    return [...this.#failed("capability").map(({ name }) => name), ...this.#unseen]
  }

  /** Whether a required check failed, so that the model cannot pass. */
  get hasFailed(): boolean {
    return this.#failed("required").some(({ outcome }) => outcome !== "not_reached")
  }

  /** Whether the engine is too slow for the checks, so that the remaining checks are skipped. */
  get isTooSlow(): boolean {
    return this.#failed("required").filter(({ isComputing, outcome }) => outcome === "timeout" && isComputing === true).length >= thresholds.mostLate
  }
}

/** The time limits of a suite, and its budget, after which only required checks run. */
interface BudgetClock extends SuiteClock {
  readonly budgetSeconds: number
}

/** Starts the clock of a suite. A slow engine, or a model that reasons, has more time. */
const startClock = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const [startedAt, begunAt] = [yield* Clock.currentTimeMillis, yield* monotonicMillis]
  const stretch = yield* stretchOf({ ...subject, salt: saltOf(suite.name, startedAt, "warm-up") })
  const longer = stretch * (thinksAnyway(subject) ? thresholds.thinkersLonger : mayThink(subject) ? thresholds.switchedLonger : 1)
  const clock: BudgetClock = {
    stretch,
    hardSeconds: thresholds.hardSeconds * longer,
    budgetSeconds: thresholds.budgetSeconds * longer,
    elapsed: Effect.map(monotonicMillis, (now) => (now - begunAt) / 1_000),
    salt: `${suite.name}-${startedAt}`
  }
  return clock
})

/** Runs a check if it applies, there is time for it, and the engine is not too slow. */
const resultOf = Effect.fnUntraced(function* (
  check: TrialCheck,
  subject: SuiteSubject,
  { isTooSlow, withdrawn }: Pick<SuiteRecord, "isTooSlow" | "withdrawn">,
  clock: BudgetClock
): Effect.fn.Return<CheckResult, EngineUnreachable> {
  const capabilities = check.usesConfirmedFeatures === true ? withdrawCapabilities(subject.capabilities, withdrawn) : subject.capabilities
  const checkSubject = { ...subject, capabilities }
  const reason = check.skipped?.(checkSubject) ?? null
  if (reason !== null) return { _tag: "NotApplicable", isUnseen: false, reason }
  const elapsed = yield* clock.elapsed
  const isOver = elapsed >= clock.hardSeconds || (elapsed >= clock.budgetSeconds && check.class !== "required")
  return isTooSlow || isOver ? { _tag: "OutOfTime", error: outOfTime(clock, check) } : yield* tryCheck(check, checkSubject, clock)
})

/**
 * Runs the suite `seatrial-core`. Fast and decisive checks run first. All checks run even if one fails, so that one run
 * shows every fault; if the engine is too slow for `thresholds.mostLate` required checks, the rest are skipped. Nothing
 * else may use the engine during the suite. Fails if the engine cannot be reached, or if the time is over before a
 * fault was found. An engine that accepts connections but does not answer is a fault. `checks`: the checks to run.
 */
export const runSuite = Effect.fn("runSuite")(function* (
  subject: SuiteSubject,
  checks: (state: SuiteState) => ReadonlyArray<TrialCheck> = suiteChecks
): Effect.fn.Return<SuiteFindings, EngineUnreachable | SuiteTimedOut> {
  const clock = yield* startClock(subject)
  const state: SuiteState = { repeats: null, likelihood: null, fidelity: null, loadedChecksum: null }
  const record = new SuiteRecord()
  for (const check of checks(state)) {
    const result = yield* resultOf(check, subject, record, clock)
    if (result._tag === "OutOfTime" && check.class === "required" && !record.hasFailed) return yield* result.error
    record.take(check, result)
  }

  const { fingerprints = [], drifted = 0 } = state.repeats ?? {}
  const seconds = Math.round(yield* clock.elapsed)
  const { withdrawn } = record
  return {
    report: {
      format: 2,
      suite: suite.name,
      suite_version: suite.version,
      passed: !record.hasFailed,
      checks: [...record.rows, summaryRow(record, subject, seconds)],
      outcomes: record.outcomes,
      fingerprints,
      fingerprint_card: fingerprints.length === 0 ? null : subject.card,
      ...(state.fidelity === null ? {} : { fidelity: state.fidelity }),
      ...(withdrawn.length === 0 ? {} : { withdrawn }),
      seed: subject.seed,
      ...(drifted === 0 ? {} : { drifted }),
      ...(state.loadedChecksum === null ? {} : { loaded_checksum: state.loadedChecksum })
    },
    likelihood: state.likelihood,
    seconds
  }
})
