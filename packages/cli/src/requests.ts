import { SeatrialClient } from "@seatrial/client"
import type { RequestRecord } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { idArgument, jsonFlag, limitFlag, pageSizeFor, printList, textFlag, timeBounds, timeFlags } from "./listing.ts"
import { printRecord } from "./print.ts"
import { dollars } from "./readable.ts"
import { optionalModelId } from "./references.ts"

const id = idArgument("The request's ID, req_...")

const row = (request: RequestRecord) => ({
  id: request.id,
  created: request.created_at,
  model: request.model,
  status: request.status_code,
  state: request.state,
  input: request.input_tokens,
  output: request.output_tokens,
  cost: request.cost_micros === null ? null : dollars(request.cost_micros),
  ttft_ms: request.ttft_ms,
  latency_ms: request.latency_ms,
  error: request.error?.code ?? null
})

const notWithSuspicion = new CommandError({ message: "--suspicion takes no other filter. Leave out --status, --model, --key, --from and --to.", exitCode: 2 })

const list = Command.make(
  "list",
  {
    status: Flag.Literals("status", ["success", "client_error", "server_error"]).pipe(Flag.withDescription("Only requests with this outcome"), Flag.optional),
    model: textFlag("model", "Only requests of this model: name or ID"),
    key: textFlag("key", "Only requests with this API key, key_..."),
    suspicion: textFlag("suspicion", "Only requests that the engine of this suspicion, sus_..., answered since its last good probe; without other filters"),
    ...timeFlags,
    limit: limitFlag,
    json: jsonFlag
  },
  Effect.fn(function* ({ from, key, model, status, suspicion, to, ...output }) {
    const api = yield* SeatrialClient
    if (Option.isSome(suspicion)) {
      if ([from, key, model, status, to].some(Option.isSome)) return yield* notWithSuspicion
      return yield* printList(output, api.org.suspicions.requests(suspicion.value, { pageSize: pageSizeFor(output.limit) }), row)
    }
    const filters = {
      ...(Option.isSome(status) ? { status: status.value } : {}),
      ...(yield* optionalModelId(model)),
      ...(Option.isSome(key) ? { api_key_id: key.value } : {}),
      ...(yield* timeBounds({ from, to }))
    }
    yield* printList(output, api.org.requests.list({ ...filters, pageSize: pageSizeFor(output.limit) }), row)
  })
).pipe(
  Command.withDescription("Lists ended requests, newest first."),
  Command.withExamples([{ command: "seatrial requests list --status server_error --from 2h", description: "List the server errors of the last two hours" }])
)

const get = Command.make(
  "get",
  { id, json: jsonFlag },
  Effect.fn(function* ({ id, json }) {
    const api = yield* SeatrialClient
    const request = yield* withCommandErrors(api.org.requests.get(id))
    yield* printRecord(json, request)
  })
).pipe(Command.withDescription("Shows a request, even while it is running."))

export const requestsCommand = Command.make("requests").pipe(
  Command.withDescription("The organization's inference requests."),
  Command.withSubcommands([list, get])
)
