import { Billing, Organizations, type UsageGroup, UsageSums } from "@seatrial/store"
import { Clock, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { jsonFlag as json, organization } from "./admin/organization.ts"
import { fromDay as from, toDay as to } from "./days.ts"
import { printRows } from "./print.ts"

const groups = ["model", "key", "day"] as const satisfies ReadonlyArray<UsageGroup>
const isGroup = Schema.is(Schema.Literals(groups))

const org = Flag.String("org").pipe(Flag.withDescription("The organization's slug; default: all organizations"), Flag.optional)
const by = Flag.String("by").pipe(
  Flag.withDescription("Group sums by these in addition to the organization: model, key, day, or several separated by commas"),
  Flag.withSchema(
    Schema.String.check(Schema.makeFilter((text) => (text.split(",").every(isGroup) ? undefined : "must consist of model, key and day, separated by commas")))
  ),
  Flag.withDefault("model")
)

const seconds = (gpuMillis: bigint) => `${gpuMillis / 1_000n}.${(gpuMillis % 1_000n).toString().padStart(3, "0")}`

/** The alert thresholds that the organization or a key has reached, for example `month 80%`. */
const alertsOf = (allowances: Effect.Success<ReturnType<Billing["Service"]["allowances"]>>, keyId: string | null): string =>
  allowances
    .filter((allowance) => allowance.keyId === keyId && allowance.reachedPercent > 0)
    .map(({ kind, reachedPercent }) => `${kind} ${reachedPercent}%`)
    .join(", ")

/** Sums of requests and GPU time from the database. */
export const usageSumsCommand = Command.make(
  "usage",
  { org, by, from, to, json },
  Effect.fn(function* ({ by, from, json, org, to }) {
    const { sums } = yield* UsageSums
    const billing = yield* Billing
    const organizations = Option.isSome(org) ? [yield* organization(org.value)] : yield* (yield* Organizations).list
    const today = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, 10)
    const days = { from: Option.getOrElse(from, () => `${today.slice(0, 8)}01`), to: Option.getOrElse(to, () => today) }
    const chosen = new Set(by.split(",").filter(isGroup))
    const rows = yield* Effect.forEach(organizations, ({ id, slug }) =>
      Effect.zipWith(sums({ orgId: id, ...days, by: chosen }), billing.allowances(id), (groupSums, allowances) =>
        groupSums.map((sum) => ({
          organization: slug,
          ...(chosen.has("day") ? { day: sum.day } : {}),
          ...(chosen.has("model") ? { model_id: sum.modelId, model: sum.model } : {}),
          ...(chosen.has("key") ? { api_key_id: sum.keyId } : {}),
          requests: sum.requests.toString(),
          refused: sum.refused.toString(),
          input_tokens: sum.inputTokens.toString(),
          cache_read_tokens: sum.cacheReadTokens.toString(),
          cache_write_tokens: sum.cacheWriteTokens.toString(),
          output_tokens: sum.outputTokens.toString(),
          cost_micros: sum.costMicros.toString(),
          gpu_seconds: seconds(sum.gpuMillis),
          gpu_cost_micros: sum.gpuMicros.toString(),
          alerts: alertsOf(allowances, chosen.has("key") ? sum.keyId : null)
        }))
      )
    )
    yield* printRows(json, rows.flat())
  })
).pipe(
  Command.withDescription(
    "Exact tokens and cost of ended requests, and GPU time of deployments, by organization, model, key and day (UTC). Reads the database."
  )
)
