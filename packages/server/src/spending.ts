import { Caller } from "@seatrial/api"
import type { OrgId, Spending } from "@seatrial/domain"
import { Billing, TenantScope } from "@seatrial/store"
import { Cache, Duration, Effect, Exit } from "effect"

/**
 * How long an answer is not read again. A reading sums all GPU time of the organization, on connections that all
 * organizations share, so calls of one organization share it.
 */
const answerAge = Duration.seconds(1)

/**
 * Reads what the caller's organization may spend and has spent. At most one reading of an organization runs at a time.
 */
export const spendingOperation = Effect.gen(function* () {
  const billing = yield* Billing

  const read = Effect.fnUntraced(function* (orgId: OrgId) {
    const [{ gpuLimit, prepaid, suspended }, { allowances, spent }] = yield* Effect.all([billing.limits(orgId), billing.spending(orgId)])
    const body: Spending = {
      object: "spending",
      prepaid,
      billing_suspended: suspended,
      gpu_limit: gpuLimit,
      spent: spent.map(({ gpuTime, period, requests }) => ({ period, requests_micros: String(requests), gpu_time_micros: String(gpuTime) })),
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

  const answers = yield* Cache.makeWith((orgId: OrgId) => Effect.provideService(read(orgId), TenantScope, orgId), {
    capacity: 10_000,
    timeToLive: (exit) => (Exit.isSuccess(exit) ? answerAge : Duration.zero)
  })
  return Effect.fnUntraced(function* () {
    const { orgId } = yield* Caller
    return yield* Cache.get(answers, orgId)
  })
})
