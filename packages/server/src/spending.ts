import { Caller } from "@seatrial/api"
import type { Spending } from "@seatrial/domain"
import { Billing } from "@seatrial/store"
import { Effect } from "effect"

/** Reads what the caller's organization may spend and has spent. */
export const spendingOperation = Effect.gen(function* () {
  const billing = yield* Billing
  return Effect.fnUntraced(function* () {
    const { orgId } = yield* Caller
    const [{ gpuLimit, prepaid, suspended }, allowances] = yield* Effect.all([billing.limits(orgId), billing.allowances(orgId)])
    const body: Spending = {
      object: "spending",
      prepaid,
      billing_suspended: suspended,
      gpu_limit: gpuLimit,
      allowances: allowances.map(({ keyId, kind, limit, reachedPercent, spent }) => ({
        api_key_id: keyId,
        allowance: kind,
        limit_micros: String(limit),
        spent_micros: String(spent),
        reached_percent: reachedPercent
      }))
    }
    return body
  })
})
