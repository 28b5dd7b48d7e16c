import { SeatrialClient } from "@seatrial/client"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { jsonFlag as json } from "./listing.ts"
import { printRecord } from "./print.ts"

export const spendingCommand = Command.make(
  "spending",
  { json },
  Effect.fn(function* ({ json }) {
    const api = yield* SeatrialClient
    yield* printRecord(json, yield* withCommandErrors(api.spending.get()))
  })
).pipe(Command.withDescription("Shows the organization's balance and its limits on spending, and how much of each is spent."))
