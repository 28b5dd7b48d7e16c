import { Billing } from "@seatrial/store"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { PlainText } from "../plainText.ts"
import { printRecord, printRows } from "../print.ts"
import { jsonFlag as json, limitFlag as limit, microsArgument as micros, orgFlag as org, organization } from "./organization.ts"
import { shownEntry } from "./purchases.ts"

export const creditsCommand = Command.make("credits").pipe(
  Command.withDescription("Credits: amounts that an administrator adds to the balance without a payment."),
  Command.withSubcommands([
    Command.make(
      "grant",
      { org, micros, note: Flag.String("note").pipe(Flag.withDescription("Reason for the credit"), Flag.withSchema(PlainText), Flag.optional), json },
      Effect.fn(function* ({ json, micros, note, org }) {
        const billing = yield* Billing
        const { id: orgId } = yield* organization(org)
        yield* billing.grantCredit({ orgId, micros: BigInt(micros), note: Option.getOrNull(note) })
        yield* printRecord(json, { org, kind: "credit", amount_micros: micros, note: Option.getOrNull(note) })
      })
    ).pipe(Command.withDescription("Grants a credit. A credit does not count as a first purchase, so it does not allow deployments by itself.")),
    Command.make(
      "list",
      { org, limit, json },
      Effect.fn(function* ({ json, limit, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRows(json, (yield* billing.entries(id, "credit", limit)).map(shownEntry))
      })
    ).pipe(Command.withDescription("Lists an organization's credits, newest first.")),
    Command.make(
      "balance",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        const { credited, gpuTime, purchased, spent } = yield* billing.balance(id)
        yield* printRecord(json, {
          org,
          purchased_micros: purchased.toString(),
          credited_micros: credited.toString(),
          spent_micros: spent.toString(),
          gpu_time_micros: gpuTime.toString(),
          balance_micros: (purchased + credited - spent - gpuTime).toString()
        })
      })
    ).pipe(Command.withDescription("Shows the balance: purchases and credits, minus the cost of requests and GPU time."))
  ])
)
