import { Allowances, type Caller, type Route, type Spending, type SpendRefusal } from "@seatrial/store"
import { Effect } from "effect"
import { GatewayConfig } from "./GatewayConfig.ts"
import { billingSuspended, insufficientBalance, type Refusal, spendLimitReached } from "./refusals.ts"

/**
 * What a request for the route spends. A request starts an engine that may scale to zero and keeps its GPUs in use; any
 * other engine holds its GPUs anyway.
 */
const spendingOf = ({ mayIdle, prices }: Route, isOwn: boolean): Spending =>
  Object.values(prices).some((rate) => rate !== "0") ? "tokens" : isOwn && mayIdle ? "gpuTime" : "nothing"

const refusalOf = (refused: SpendRefusal): Refusal => {
  if (refused === "suspended") return billingSuspended
  const { kind, of } = refused
  return kind === "balance" ? insufficientBalance : spendLimitReached[of][kind]
}

/**
 * Refuses a request if its caller may not spend; null if it may be served. Answers from memory unless an allowance is
 * almost used up.
 */
export const makeMayCost = Effect.gen(function* () {
  const { check } = yield* Allowances
  const { perOrg } = yield* GatewayConfig
  return (caller: Caller, route: Route): Effect.Effect<Refusal | null> | Refusal | null => {
    const refused = check(caller, spendingOf(route, route.orgId === caller.orgId), perOrg)
    if (refused === null) return null
    return Effect.isEffect(refused) ? Effect.map(refused, (reason) => (reason === null ? null : refusalOf(reason))) : refusalOf(refused)
  }
})
