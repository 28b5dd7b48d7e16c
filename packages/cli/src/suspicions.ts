import { SeatrialClient } from "@seatrial/client"
import type { Suspicion } from "@seatrial/domain"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { jsonFlag, limitFlag, pageSizeFor, printList } from "./listing.ts"

const row = ({ created_at, engine, engines, id, model_id, probes, requests, since, withdrawn_at }: Suspicion) => ({
  id,
  alarm: created_at,
  model: model_id,
  engine,
  since,
  withdrawn: withdrawn_at,
  probes,
  engines,
  requests
})

export const suspicionsCommand = Command.make(
  "suspicions",
  { limit: limitFlag, json: jsonFlag },
  Effect.fn(function* (output) {
    const api = yield* SeatrialClient
    yield* printList(output, api.org.suspicions.list({ pageSize: pageSizeFor(output.limit) }), row)
  })
).pipe(
  Command.withDescription(
    "Lists serving engines whose probes differed from their trial, newest first, with the number of requests that they answered since their last good probe. List these requests with `seatrial requests list --suspicion ID`."
  )
)
