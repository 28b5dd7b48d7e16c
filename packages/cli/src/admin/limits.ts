import { KeyId } from "@seatrial/domain"
import { Billing, type BillingLimits, type SpendLimit } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

const view = (org: string, { dayLimitMicros, gpuLimit, monthLimitMicros, prepaid, suspended }: BillingLimits) => ({
  org,
  gpu_limit: gpuLimit,
  day_limit_micros: dayLimitMicros?.toString() ?? null,
  month_limit_micros: monthLimitMicros?.toString() ?? null,
  billing: suspended ? "suspended" : "active",
  mode: prepaid ? "prepaid" : "invoiced"
})

const gpus = Flag.String("gpus").pipe(
  Flag.withDescription("Maximum number of GPUs that the organization may hold, or `none` for no limit"),
  Flag.withSchema(Schema.String.check(Schema.isPattern(/^(none|\d{1,6})$/u, { message: "Expected a number of GPUs, 0 to 999999, or none" }))),
  Flag.optional
)
const spendFlag = (period: "day" | "month") =>
  Flag.String(period).pipe(
    Flag.withDescription(`Maximum spend in micro-dollars per UTC ${period}, or \`none\` for no limit`),
    Flag.withSchema(Schema.String.check(Schema.isPattern(/^(none|\d{1,18})$/u, { message: "Expected whole micro-dollars, 0 or more, or none" }))),
    Flag.optional
  )
const key = Flag.String("key").pipe(Flag.withDescription("A key's ID, key_...: set the spend limits of this key"), Flag.withSchema(KeyId), Flag.optional)

const amountOf = (text: string) => (text === "none" ? null : BigInt(text))
const changeOf = (day: Option.Option<string>, month: Option.Option<string>): Partial<SpendLimit> => ({
  ...(Option.isSome(day) ? { day: amountOf(day.value) } : {}),
  ...(Option.isSome(month) ? { month: amountOf(month.value) } : {})
})

export const limitsCommand = Command.make("limits").pipe(
  Command.withDescription("Limits of an organization and its keys."),
  Command.withSubcommands([
    Command.make(
      "show",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, view(org, yield* billing.limits(id)))
      })
    ).pipe(Command.withDescription("Shows an organization's limits.")),
    Command.make(
      "spent",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        const allowances = yield* billing.allowances(id)
        yield* printRows(
          json,
          allowances.map(({ keyId, kind, limit, reachedPercent, spent }) => ({
            api_key_id: keyId,
            allowance: kind,
            limit_micros: limit.toString(),
            spent_micros: spent.toString(),
            alert_percent: reachedPercent === 0 ? null : reachedPercent
          }))
        )
      })
    ).pipe(
      Command.withDescription("Lists the balance and the spend limits of an organization and its keys, with the amount spent and the alert threshold reached.")
    ),
    Command.make(
      "set",
      { org, gpus, day: spendFlag("day"), month: spendFlag("month"), key, json },
      Effect.fn(function* ({ day, gpus, json, key, month, org }) {
        const billing = yield* Billing
        const change = changeOf(day, month)
        if (Option.isNone(gpus) && Object.keys(change).length === 0) return yield* new CommandError({ message: "Set --gpus, --day or --month.", exitCode: 2 })
        if (Option.isSome(key) && Option.isSome(gpus)) {
          return yield* new CommandError({ message: "A key has no GPU limit. Use --gpus without --key.", exitCode: 2 })
        }
        const { id } = yield* organization(org)
        if (Option.isSome(key)) {
          const limit = yield* billing.setKeySpendLimit(id, key.value, change)
          if (Option.isNone(limit)) {
            return yield* new CommandError({ message: `${org} has no live key ${key.value}. \`seatrial admin keys list\` lists its keys.` })
          }
          const of = {
            org,
            api_key_id: key.value,
            day_limit_micros: limit.value.day?.toString() ?? null,
            month_limit_micros: limit.value.month?.toString() ?? null
          }
          return yield* printRecord(json, of)
        }
        if (Option.isSome(gpus)) yield* billing.setGpuLimit(id, amountOf(gpus.value) === null ? null : Number(gpus.value))
        yield* printRecord(json, view(org, yield* billing.setSpendLimit(id, change)))
      })
    ).pipe(
      Command.withDescription("Sets the GPU and spend limits of an organization, or the spend limits of one of its keys."),
      Command.withExamples([{ command: "seatrial admin limits set --org acme --month 50000000 --day none", description: "50 dollars a month" }])
    )
  ])
)

export const billingCommand = Command.make("billing").pipe(
  Command.withDescription("Billing mode and status of an organization."),
  Command.withSubcommands([
    Command.make(
      "mode",
      { org, mode: Argument.Literals("mode", ["prepaid", "invoiced"]).pipe(Argument.withDescription("prepaid or invoiced")), json },
      Effect.fn(function* ({ json, mode, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, view(org, yield* billing.setPrepaid(id, mode === "prepaid")))
      })
    ).pipe(Command.withDescription("Sets the billing mode. `prepaid` limits spending to the balance. `invoiced` (the default) does not.")),
    Command.make(
      "suspend",
      { org, yes, json },
      Effect.fn(function* ({ json, org, yes }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* confirm(
          yes,
          `New deployments of ${org} and its requests that cost money will be refused until billing is resumed. Serving engines will release their GPUs after one hour (OPERATOR_UNPAID_GRACE_SECONDS).`
        )
        yield* printRecord(json, view(org, yield* billing.setSuspended(id, true)))
      })
    ).pipe(
      Command.withDescription(
        "Suspends billing: new deployments and requests that cost money are refused with 402. Serving engines release their GPUs after one hour (OPERATOR_UNPAID_GRACE_SECONDS)."
      )
    ),
    Command.make(
      "resume",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, view(org, yield* billing.setSuspended(id, false)))
      })
    ).pipe(Command.withDescription("Resumes billing: deployments and requests that cost money are accepted again."))
  ])
)
