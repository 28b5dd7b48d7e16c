import { KeyId } from "@seatrial/domain"
import { Billing, type BillingLimits, type SpendLimit } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

const shown = (org: string, { dayLimitMicros, gpuLimit, monthLimitMicros, prepaid, suspended }: BillingLimits) => ({
  org,
  gpu_limit: gpuLimit,
  day_limit_micros: dayLimitMicros?.toString() ?? null,
  month_limit_micros: monthLimitMicros?.toString() ?? null,
  billing: suspended ? "suspended" : "active",
  mode: prepaid ? "prepaid" : "invoiced"
})

const gpus = Flag.String("gpus").pipe(
  Flag.withDescription("GPUs that the organization's runs may hold at once, or none for no limit"),
  Flag.withSchema(Schema.String.check(Schema.isPattern(/^(none|\d{1,6})$/u, { message: "Expected a number of GPUs, 0 to 999999, or none" }))),
  Flag.optional
)
const spendFlag = (period: "day" | "month") =>
  Flag.String(period).pipe(
    Flag.withDescription(`Micro-dollars that may be spent each UTC ${period}, or none for no limit`),
    Flag.withSchema(Schema.String.check(Schema.isPattern(/^(none|\d{1,18})$/u, { message: "Expected whole micro-dollars, 0 or more, or none" }))),
    Flag.optional
  )
const key = Flag.String("key").pipe(
  Flag.withDescription("A key's id, key_...: the limits of spending are then that key's"),
  Flag.withSchema(KeyId),
  Flag.optional
)

const amountOf = (text: string) => (text === "none" ? null : BigInt(text))
const changeOf = (day: Option.Option<string>, month: Option.Option<string>): Partial<SpendLimit> => ({
  ...(Option.isSome(day) ? { day: amountOf(day.value) } : {}),
  ...(Option.isSome(month) ? { month: amountOf(month.value) } : {})
})

export const limitsCommand = Command.make("limits").pipe(
  Command.withDescription("What an organization and its keys may use and spend."),
  Command.withSubcommands([
    Command.make(
      "show",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, shown(org, yield* billing.limits(id)))
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
      Command.withDescription(
        "Lists the balance and the limits of spending of an organization and its keys, with what is spent of each and the alert that it reached."
      )
    ),
    Command.make(
      "set",
      { org, gpus, day: spendFlag("day"), month: spendFlag("month"), key, json },
      Effect.fn(function* ({ day, gpus, json, key, month, org }) {
        const billing = yield* Billing
        const change = changeOf(day, month)
        if (Option.isNone(gpus) && Object.keys(change).length === 0) return yield* new CommandError({ message: "Give --gpus, --day or --month.", exitCode: 2 })
        if (Option.isSome(key) && Option.isSome(gpus)) {
          return yield* new CommandError({ message: "A key has no limit of GPUs: give --gpus without --key.", exitCode: 2 })
        }
        const { id } = yield* organization(org)
        if (Option.isSome(key)) {
          const limit = yield* billing.setKeySpendLimit(id, key.value, change)
          if (Option.isNone(limit)) {
            return yield* new CommandError({ message: `${org} has no live key ${key.value}. \`seatrial admin keys list\` shows its keys.` })
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
        yield* printRecord(json, shown(org, yield* billing.setSpendLimit(id, change)))
      })
    ).pipe(
      Command.withDescription("Sets limits of an organization: GPUs at once, and what it may spend each day and month; or what one of its keys may spend."),
      Command.withExamples([{ command: "seatrial admin limits set --org acme --month 50000000 --day none", description: "50 dollars a month" }])
    )
  ])
)

export const billingCommand = Command.make("billing").pipe(
  Command.withDescription("How an organization pays, and whether it may spend."),
  Command.withSubcommands([
    Command.make(
      "mode",
      { org, mode: Argument.Literals("mode", ["prepaid", "invoiced"]).pipe(Argument.withDescription("prepaid or invoiced")), json },
      Effect.fn(function* ({ json, mode, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, shown(org, yield* billing.setPrepaid(id, mode === "prepaid")))
      })
    ).pipe(Command.withDescription("Sets whether an organization spends no more than its balance (prepaid), or is invoiced for what it spends (the default).")),
    Command.make(
      "suspend",
      { org, yes, json },
      Effect.fn(function* ({ json, org, yes }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* confirm(yes, `${org} makes no new deployments, and its requests that cost money are refused, until billing is resumed.`)
        yield* printRecord(json, shown(org, yield* billing.setSuspended(id, true)))
      })
    ).pipe(
      Command.withDescription(
        "Suspends billing: new deployments are answered with 402 as without a first purchase, and so are requests that cost money. Engines that run go on."
      )
    ),
    Command.make(
      "resume",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRecord(json, shown(org, yield* billing.setSuspended(id, false)))
      })
    ).pipe(Command.withDescription("Resumes billing: deployments can be made and requests cost money again."))
  ])
)
