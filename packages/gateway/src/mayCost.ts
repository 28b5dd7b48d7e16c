import { Allowances, type Caller, type Route, type Spending, type SpendRefusal } from "@seatrial/store"
import { Effect } from "effect"
import { GatewayConfig } from "./GatewayConfig.ts"
import { billingSuspended, insufficientBalance, type Refusal, spendLimitReached } from "./refusals.ts"

/** What a request for the route spends. An engine that may idle is started by a request, and keeps its GPUs because of it; any other holds them anyway. */
const spendingOf = ({ mayIdle, prices }: Route, isOwn: boolean): Spending =>
  Object.values(prices).some((rate) => rate !== "0") ? "tokens" : isOwn && mayIdle ? "gpuTime" : "nothing"

const refusalOf = (refused: SpendRefusal): Refusal => {
  if (refused === "suspended") return billingSuspended
  const { kind, of } = refused
  return kind === "balance" ? insufficientBalance : spendLimitReached[of][kind]
}

/** Refuses a request that its caller may not pay for: null if it may be served. From memory, unless little is left of an allowance. */
export const makeMayCost = Effect.gen(function* () {
  const { check } = yield* Allowances
  const { perOrg } = yield* GatewayConfig
  return (caller: Caller, route: Route): Effect.Effect<Refusal | null> | Refusal | null => {
    const refused = check(caller, spendingOf(route, route.orgId === caller.orgId), perOrg)
    if (refused === null) return null
    return Effect.isEffect(refused) ? Effect.map(refused, (reason) => (reason === null ? null : refusalOf(reason))) : refusalOf(refused)
  }
})
