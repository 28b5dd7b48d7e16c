import { SeatrialClient } from "@seatrial/client"
import { type AuditEvent, AuditResource } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { idArgument, jsonFlag, limitFlag, pageSizeFor, printList, textFlag, timeBounds, timeFlags } from "./listing.ts"
import { printRecord } from "./print.ts"

const row = ({ action, actor_kind, actor_user_id, created_at, id, resource_id, resource_type }: AuditEvent) => ({
  id,
  created: created_at,
  actor: actor_kind,
  user: actor_user_id,
  action,
  type: resource_type,
  resource: resource_id
})

const list = Command.make(
  "list",
  {
    actor: textFlag("actor", "Only changes by this user, usr_..., or administrator, admin:NAME"),
    resource: Flag.Literals("resource", AuditResource.literals).pipe(Flag.withDescription("Only changes of resources of this type"), Flag.optional),
    ...timeFlags,
    limit: limitFlag,
    json: jsonFlag
  },
  Effect.fn(function* ({ actor, from, resource, to, ...output }) {
    const api = yield* SeatrialClient
    const filters = {
      ...(Option.isSome(actor) ? { actor_user_id: actor.value } : {}),
      ...(Option.isSome(resource) ? { resource_type: resource.value } : {}),
      ...(yield* timeBounds({ from, to }))
    }
    yield* printList(output, api.org.auditEvents.list({ ...filters, pageSize: pageSizeFor(output.limit) }), row)
  })
).pipe(Command.withDescription("Lists audit events, newest first."))

const get = Command.make(
  "get",
  { id: idArgument("The event's ID, aud_..."), json: jsonFlag },
  Effect.fn(function* ({ id, json }) {
    const api = yield* SeatrialClient
    const event = yield* withCommandErrors(api.org.auditEvents.get(id))
    yield* printRecord(json, event)
  })
).pipe(Command.withDescription("Shows an audit event with the values before and after the change."))

export const auditCommand = Command.make("audit").pipe(
  Command.withDescription("Changes in the organization, and who made them."),
  Command.withSubcommands([list, get])
)
