import { type Check, type CheckReport, withdrawCapabilities } from "@seatrial/domain"
import { Clock, Data, Effect, Result } from "effect"
import { type EngineUnreachable, Unexpected } from "../EngineClient.ts"
import { monotonicMillis } from "../monotonicMillis.ts"
import { type CheckClass, isBroken, type NotApplicable, type TrialCheck } from "./Check.ts"
import { mayThink, questionOf, type SuiteSubject, thinksAnyway } from "./SuiteSubject.ts"
import { type SuiteState, suiteChecks } from "./suiteChecks.ts"
import { suite } from "./suiteVersion.ts"
import { thresholds, tinyParameters } from "./thresholds.ts"

const longestDetail = 240

/** The suite's time was over before it had a verdict: no fault of the model was found. */
export class SuiteTimedOut extends Data.TaggedError("SuiteTimedOut")<{ readonly message: string }> {}

/** What the suite found. `likelihood` is kept for the trials to come. */
export interface SuiteFindings {
  readonly report: CheckReport
  readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null
}

const row = (name: string, passed: boolean, detail: string): Check => ({ name, passed, detail: detail.slice(0, longestDetail) })

/** As many whole names in brackets as there is room for, in characters. */
const named = (names: ReadonlyArray<string>, room: number): string => {
  for (let count = names.length; count > 0; count--) {
    const text = ` (${[...names.slice(0, count), ...(count < names.length ? ["..."] : [])].join(", ")})`
    if (text.length <= room) return text
  }
  return ""
}

/** How far the limits are stretched for an engine whose tokens take longer than usual: what one answer alone takes for each. */
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

/** Whether it is a fault that was seen, which says more than that a first run was late. */
const isFault = (failure: Unexpected | NotApplicable | SuiteTimedOut): failure is Unexpected => failure._tag === "Unexpected" && failure.open !== true

type Tried = Result.Result<string, Unexpected | NotApplicable | SuiteTimedOut>

/**
 * The suite `seatrial-core`: cheap and decisive rows first, all of them although one failed, so that one run shows every fault. A failed row is run once more, and
 * passing then is failing too, but where it judges by the clock, was only late (an engine may have to prepare what it is asked first), or judges a share of both runs.
 * Nothing else may use the engine meanwhile. Fails where the engine could not be reached, or where time was over before any fault was found; one that is there and does
 * not answer is a fault. `checks`: its rows.
 */
export const runSuite = Effect.fn("runSuite")(function* (
  subject: SuiteSubject,
  checks: (state: SuiteState) => ReadonlyArray<TrialCheck> = suiteChecks
): Effect.fn.Return<SuiteFindings, EngineUnreachable | SuiteTimedOut> {
  const [startedAt, begunAt] = [yield* Clock.currentTimeMillis, yield* monotonicMillis]
  const state: SuiteState = { repeats: null, likelihood: null, fidelity: null }
  const stretch = yield* stretchOf({ ...subject, salt: `${suite.name}-${startedAt}-warm-up` })
  const since = Effect.map(monotonicMillis, (now) => (now - begunAt) / 1_000)
  const longer = stretch * (thinksAnyway(subject) ? thresholds.thinkersLonger : mayThink(subject) ? thresholds.switchedLonger : 1)
  const hard = thresholds.hardSeconds * longer

  const once = (check: TrialCheck, asked: SuiteSubject, turn: number): Effect.Effect<Tried, EngineUnreachable> =>
    Effect.gen(function* () {
      const limit = check.limitSeconds(asked) * stretch
      const left = Math.max(0, hard - (yield* since))
      const message = `The checks took longer than ${Math.round(hard)} s; ${check.name} was not done.`
      return yield* check.run({ ...asked, salt: `${suite.name}-${startedAt}-${check.name}-${turn}` }).pipe(
        Effect.timeoutOrElse({
          duration: `${Math.min(limit, left)} seconds`,
          // Where its own time was cut short, that was ours.
          orElse: () =>
            Effect.fail(left < limit ? new SuiteTimedOut({ message }) : new Unexpected({ detail: `not done within ${Math.round(limit)} s`, open: true }))
        }),
        Effect.map((detail): Tried => Result.succeed(detail)),
        Effect.catchTags({
          Unexpected: (error) => Effect.succeed<Tried>(Result.fail(error)),
          NotApplicable: (error) => Effect.succeed<Tried>(Result.fail(error)),
          SuiteTimedOut: (error) => Effect.succeed<Tried>(Result.fail(error)),
          EngineUnreachable: (error) =>
            error.silentFor === undefined
              ? Effect.fail(error)
              : Effect.succeed<Tried>(Result.fail(new Unexpected({ detail: `engine_hung: no answer and no token within ${error.silentFor} s`, open: true })))
        })
      )
    })

  const rows: Array<Check> = []
  const failed: Array<{ readonly name: string; readonly class: CheckClass }> = []
  const skipped: Array<string> = []
  const unrun: Array<string> = []
  const unseen: Array<string> = []
  const judge = (check: TrialCheck, passed: boolean, detail: string) => {
    rows.push(row(check.name, passed, detail))
    if (!passed) failed.push(check)
  }
  /** Leaves out what there is no time for; false where that leaves no verdict. */
  const leave = (check: TrialCheck): boolean => {
    const decided = check.class !== "required" || failed.some((each) => each.class === "required")
    unrun.push(check.name)
    if (check.class === "capability") failed.push(check)
    return decided
  }
  const notApplicable = ({ name }: TrialCheck, { unseen: shown = false }: NotApplicable) => {
    skipped.push(name)
    if (shown) unseen.push(name)
  }
  const withdrawn = () => [...failed.filter((check) => check.class === "capability").map(({ name }) => name), ...unseen]
  for (const check of checks(state)) {
    const asked = check.heldToSeen === true ? { ...subject, capabilities: withdrawCapabilities(subject.capabilities, withdrawn()) } : subject
    if (check.skipped !== undefined && check.skipped(asked) !== null) {
      skipped.push(check.name)
      continue
    }
    const elapsed = yield* since
    if (elapsed >= hard || (elapsed >= thresholds.budgetSeconds * longer && check.class !== "required")) {
      if (!leave(check)) return yield* new SuiteTimedOut({ message: `The checks took longer than ${Math.round(hard)} s; ${check.name} was not begun.` })
      continue
    }
    const first = yield* once(check, asked, 1)
    if (Result.isSuccess(first)) judge(check, true, first.success)
    else if (first.failure._tag === "NotApplicable") notApplicable(check, first.failure)
    else if (first.failure._tag === "SuiteTimedOut") {
      if (!leave(check)) return yield* first.failure
    } else {
      const again = yield* once(check, asked, 2)
      const { open } = first.failure
      const other = Result.isFailure(again) ? again.failure : null
      if (other?._tag === "SuiteTimedOut" && open === true) {
        if (!leave(check)) return yield* other
      } else if (other?._tag === "NotApplicable" && open === true) notApplicable(check, other)
      else if (Result.isFailure(again)) judge(check, false, open === true && isFault(again.failure) ? again.failure.detail : first.failure.detail)
      else if (check.clockBound === true || first.failure.open === true) judge(check, true, `${again.success}; at the second try`)
      else judge(check, false, `${isBroken(first.failure) ? "engine error" : "nondeterministic_output: failed"}, then passed (${first.failure.detail})`)
    }
  }

  const seconds = Math.round(yield* since)
  const { fingerprints = [], drifted = 0 } = state.repeats ?? {}
  const late = unrun.length === 0 ? "" : `, ${unrun.length} not reached (${unrun.join(", ")})`
  const blind = unseen.length === 0 ? "" : `, ${unseen.length} not seen (${unseen.join(", ")})`
  const ending = `, ${seconds} s`
  const summary = `${suite.name} ${suite.version}: ${rows.length} run, ${skipped.length} not applicable${late}${blind}`
  const passed = failed.every((check) => check.class !== "required")
  const gone = withdrawn()
  return {
    report: {
      suite: suite.name,
      suite_version: suite.version,
      passed,
      checks: [...rows, row("suite", true, `${summary}${named(skipped, longestDetail - summary.length - ending.length)}${ending}`)],
      fingerprints,
      fingerprint_card: fingerprints.length === 0 ? null : subject.card,
      ...(state.fidelity === null ? {} : { fidelity: state.fidelity }),
      ...(gone.length === 0 ? {} : { withdrawn: gone }),
      ...(drifted === 0 ? {} : { drifted })
    },
    likelihood: state.likelihood
  }
})
