import { Billing, type BillingEntry, Organizations } from "@seatrial/store"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { PlainText } from "../plainText.ts"
import { printRecord, printRows } from "../print.ts"
import { jsonFlag as json, limitFlag as limit, microsArgument as micros, orgFlag as org, organization } from "./organization.ts"

/** As purchases and credits are listed. */
export const shownEntry = ({ amountMicros, createdAt, kind, note }: BillingEntry) => ({
  kind,
  amount_micros: amountMicros.toString(),
  [kind === "purchase" ? "reference" : "note"]: note,
  created_at: createdAt
})

export const purchasesCommand = Command.make("purchases").pipe(
  Command.withDescription("Purchases."),
  Command.withSubcommands([
    Command.make(
      "record",
      {
        org,
        micros,
        reference: Flag.String("reference").pipe(
          Flag.withDescription("The invoice's number or the like; the same one is not recorded twice"),
          Flag.withSchema(PlainText),
          Flag.optional
        ),
        json
      },
      Effect.fn(function* ({ json, micros, org, reference }) {
        const organizations = yield* Organizations
        const { id: orgId } = yield* organization(org)
        const given = Option.isSome(reference) ? { reference: reference.value } : {}
        const recorded = yield* organizations.recordPurchase({ orgId, micros: BigInt(micros), ...given })
        if (!recorded) return yield* new CommandError({ message: `A purchase of ${org} with that reference was recorded before. Nothing was done.` })
        yield* printRecord(json, { org, kind: "purchase", amount_micros: micros, reference: Option.getOrNull(reference) })
      })
    ).pipe(Command.withDescription("Records a purchase; the first one allows deployments.")),
    Command.make(
      "list",
      { org, limit, json },
      Effect.fn(function* ({ json, limit, org }) {
        const billing = yield* Billing
        const { id } = yield* organization(org)
        yield* printRows(json, (yield* billing.entries(id, "purchase", limit)).map(shownEntry))
      })
    ).pipe(Command.withDescription("Lists an organization's purchases, newest first."))
  ])
)
