import type { Check, CheckReport } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import type { EngineUnreachable } from "../EngineClient.ts"
import type { Subject } from "../Subject.ts"
import { engineIdentity, finishReasons, stillAlive, streamEqualsWhole, usageExact } from "./answerChecks.ts"
import { greedyRepeats, type Repeats } from "./fingerprints.ts"
import { badRequests, contextEdge } from "./limitChecks.ts"

const suite = "seatrial-core"
const suiteVersion = 0

const row = (name: string, passed: boolean, detail: string): Check => ({ name, passed, detail: detail.slice(0, 240) })

/**
 * The suite `seatrial-core`: cheap and decisive rows first, all of them although one failed, so that one run shows every fault. Fails only where the engine could not be
 * reached. Nothing else may use the engine meanwhile.
 */
export const runSuite = Effect.fn("runSuite")(function* (subject: Subject): Effect.fn.Return<CheckReport, EngineUnreachable> {
  const startedAt = yield* Clock.currentTimeMillis
  const rows: Array<Check> = []
  let skipped = 0
  let repeats: Repeats = { detail: "", fingerprints: [] }
  const greedy = Effect.map(greedyRepeats(subject), (found) => {
    repeats = found
    return found.detail
  })
  const checks = [
    engineIdentity,
    usageExact,
    finishReasons,
    streamEqualsWhole,
    { name: "greedy_repeats", run: () => greedy },
    badRequests,
    contextEdge,
    stillAlive
  ]
  for (const check of checks) {
    if ("skipped" in check && check.skipped?.(subject) === true) {
      skipped++
      continue
    }
    rows.push(
      yield* check.run(subject).pipe(
        Effect.map((detail) => row(check.name, true, detail)),
        Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(row(check.name, false, detail)))
      )
    )
  }
  const seconds = Math.round(((yield* Clock.currentTimeMillis) - startedAt) / 1_000)
  const passed = rows.every((check) => check.passed)
  const { fingerprints } = repeats
  return {
    suite,
    suite_version: suiteVersion,
    passed,
    checks: [...rows, row("suite", true, `${suite} ${suiteVersion}: ${rows.length} run, ${skipped} not applicable, ${seconds} s`)],
    fingerprints,
    fingerprint_card: fingerprints.length === 0 ? null : subject.card
  }
})
