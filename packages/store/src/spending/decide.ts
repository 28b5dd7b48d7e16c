import type { KeyId, OrgId } from "@seatrial/domain"
import type { Account, Allowance } from "./Account.ts"

/**
 * How a request costs money. `tokens`: its model has rates. `gpuTime`: it starts GPUs or keeps them, and their time is
 * billed. `nothing`: neither.
 */
export type Spending = "tokens" | "gpuTime" | "nothing"

/** Why a request may not be served: billing is suspended, or an allowance is used up. */
export type SpendRefusal = "suspended" | Allowance

const isUsedUp = ({ limit, spent }: Allowance) => spent >= limit

/**
 * An exhausted balance refuses every request. A limit refuses only requests that add to it: GPU time counts against the
 * organization, not against a key.
 */
const applies = ({ kind, of }: Allowance, spending: Spending): boolean =>
  kind === "balance" || spending === "tokens" || (spending === "gpuTime" && of === "organization")

/** The organization and key of a request. */
export interface Spender {
  readonly orgId: OrgId
  readonly keyId: KeyId
}

/**
 * The allowances of an organization and a key (null: of the organization only), with the costs that this process knows.
 */
export type AllowancesOf = (account: Account, orgId: string, keyId: string | null) => ReadonlyArray<Allowance>

/**
 * `close`: at most `margin` is left of an allowance. If `margin` is null, any remainder counts as close; if it is 0,
 * none.
 */
export const decide = (
  allowancesOf: AllowancesOf,
  account: Account,
  { keyId, orgId }: Spender,
  spending: Spending,
  margin: bigint | null
): SpendRefusal | "close" | null => {
  if (account.facts.isSuspended && spending !== "nothing") return "suspended"
  let isClose = false
  for (const allowance of allowancesOf(account, orgId, keyId)) {
    if (!applies(allowance, spending)) continue
    if (isUsedUp(allowance)) return allowance
    if (margin === null || allowance.limit - allowance.spent <= margin) isClose = true
  }
  return isClose ? "close" : null
}
