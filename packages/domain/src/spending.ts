import { Schema } from "effect"
import { Micros } from "./money.ts"
import { Id } from "./records.ts"

/** One limit on spending, with the amount spent. Money in micro-dollars. */
export const SpendAllowance = Schema.Struct({
  /** Null: a limit of the whole organization. */
  api_key_id: Schema.NullOr(Id),
  /** `balance`: purchases and credits of a prepaid organization. `day` and `month` are UTC. */
  allowance: Schema.Literals(["balance", "day", "month"]),
  limit_micros: Micros,
  spent_micros: Micros,
  /** The highest alert threshold that is reached; 0: none. */
  reached_percent: Schema.Literals([0, 50, 80, 100])
})
export type SpendAllowance = typeof SpendAllowance.Type

/** What an organization has spent in the current day or month (UTC), whether it has a limit or not. Money in micro-dollars. */
const SpentInPeriod = Schema.Struct({
  period: Schema.Literals(["day", "month"]),
  requests_micros: Micros,
  gpu_time_micros: Micros
})

/** What an organization may spend and has spent, as the API shows it: an addition to the contract's records. */
export const Spending = Schema.Struct({
  object: Schema.Literal("spending"),
  /** Whether the organization may spend only its balance; if false, it is invoiced. */
  prepaid: Schema.Boolean,
  billing_suspended: Schema.Boolean,
  /** GPUs that all deployments of the organization may use at once; null: no limit. */
  gpu_limit: Schema.NullOr(Schema.Int),
  spent: Schema.Array(SpentInPeriod),
  /** Limits of the organization first, then of its keys. */
  allowances: Schema.Array(SpendAllowance)
}).annotate({ identifier: "Spending" })
export type Spending = typeof Spending.Type
