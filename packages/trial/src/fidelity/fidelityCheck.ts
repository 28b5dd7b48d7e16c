import type { Fidelity } from "@seatrial/domain"
import { Clock, Effect } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "../suite/Check.ts"
import { withoutThinking } from "../suite/SuiteSubject.ts"
import { thresholds } from "../suite/thresholds.ts"
import { answerItems, compareAnswers } from "./compareAnswers.ts"
import { itemsFor } from "./items.ts"

const describeFidelity = ({ n, passed, rule1, rule2, tier, withinUlpMin }: Fidelity): string => {
  const points = `${rule1.diffPoints.toFixed(1)} +- ${rule1.standardErrorPoints.toFixed(1)} points`
  const same = `answers equal to the merged model's: adapter ${rule2.identicalAdapterChild}, base ${rule2.identicalBaseChild} (rule 2 ${rule2.status})`
  const weights = withinUlpMin === null ? "" : `, weights ${withinUlpMin.toFixed(4)}`
  const nothing = passed.adapter + passed.child + passed.base === 0 ? "; no model answered any item correctly" : ""
  return `${tier}: right ${passed.adapter}, merged ${passed.child}, base ${passed.base} of ${n}, ${points}; ${same}${weights}${nothing}`
}

/**
 * Whether the adapter answers like its base with the adapter merged into it. The check passes the figures to `keep`,
 * for the receipts.
 */
export const fidelityCheck = (keep: (fidelity: Fidelity) => void): TrialCheck => ({
  name: "fidelity",
  class: "required",
  purpose: "With the adapter the engine gives the answers of the merged model",
  limitSeconds: seconds(thresholds.fidelitySeconds),
  skipped: ({ baseName, merged }) => (baseName === undefined ? "no adapter" : merged == null ? "no merged model" : null),
  run: Effect.fnUntraced(function* (subject) {
    const { baseName, merged } = subject
    if (baseName === undefined || merged == null) return yield* new NotApplicable({ reason: "no adapter" })
    const items = itemsFor(subject.parameters)
    const adapter = yield* answerItems(subject, items, withoutThinking(subject))
    const base = yield* answerItems({ ...subject, servedName: baseName }, items, withoutThinking(subject))
    const { failure, fidelity } = compareAnswers({ child: merged.answers, adapter, base }, merged, yield* Clock.currentTimeMillis, items)
    keep(fidelity)
    return failure === null ? describeFidelity(fidelity) : yield* unexpected(failure.text, { code: failure.code })
  })
})
