import { Organizations } from "@seatrial/store"
import { Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { printRecord } from "../print.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

export const purchasesCommand = Command.make("purchases").pipe(
  Command.withDescription("Purchases."),
  Command.withSubcommands([
    Command.make(
      "record",
      {
        org,
        micros: Argument.String("micros").pipe(
          Argument.withDescription("Micro-dollars"),
          Argument.withSchema(Schema.String.check(Schema.isPattern(/^\d{1,18}$/u)))
        ),
        json
      },
      Effect.fn(function* ({ json, micros, org }) {
        const organizations = yield* Organizations
        const { id: orgId } = yield* organization(org)
        yield* organizations.recordPurchase({ orgId, micros: BigInt(micros) })
        yield* printRecord(json, { org, micros })
      })
    ).pipe(Command.withDescription("Records a purchase; the first one allows deployments."))
  ])
)
