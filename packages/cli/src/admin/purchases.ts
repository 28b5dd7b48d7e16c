import { Billing, type BillingEntry, Organizations } from "@seatrial/store"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { PlainText } from "../plainText.ts"
import { printRecord, printRows } from "../print.ts"
import { jsonFlag as json, limitFlag as limit, microsArgument as micros, orgFlag as org, organization } from "./organization.ts"

/** The columns of purchases and credits. */
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
          Flag.withDescription("An invoice number or similar; each reference is recorded only once"),
          Flag.withSchema(PlainText),
          Flag.optional
        ),
        json
      },
      Effect.fn(function* ({ json, micros, org, reference }) {
        const organizations = yield* Organizations
        const { id: orgId } = yield* organization(org)
        const referenceField = Option.isSome(reference) ? { reference: reference.value } : {}
        const isRecorded = yield* organizations.recordPurchase({ orgId, micros: BigInt(micros), ...referenceField })
        if (!isRecorded) return yield* new CommandError({ message: `A purchase of ${org} with this reference already exists. Nothing was changed.` })
        yield* printRecord(json, { org, kind: "purchase", amount_micros: micros, reference: Option.getOrNull(reference) })
      })
    ).pipe(Command.withDescription("Records a purchase. An organization can deploy after its first purchase.")),
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
