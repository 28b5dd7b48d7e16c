import { SeatrialClient } from "@seatrial/client"
import { type AuditEvent, AuditResource } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { idArgument, jsonFlag, limitFlag, pageSizeFor, printList, textFlag, timeBounds, timeFlags } from "./listing.ts"
import { printRecord } from "./print.ts"
import { told } from "./told.ts"

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
    actor: textFlag("actor", "Only what this user did, usr_..."),
    resource: Flag.Literals("resource", AuditResource.literals).pipe(Flag.withDescription("Only changes of this type of resource"), Flag.optional),
    ...timeFlags,
    limit: limitFlag,
    json: jsonFlag
  },
  Effect.fn(function* ({ actor, from, resource, to, ...shown }) {
    const api = yield* SeatrialClient
    const filters = {
      ...(Option.isSome(actor) ? { actor_user_id: actor.value } : {}),
      ...(Option.isSome(resource) ? { resource_type: resource.value } : {}),
      ...(yield* timeBounds({ from, to }))
    }
    yield* printList(shown, api.org.auditEvents.list({ ...filters, pageSize: pageSizeFor(shown.limit) }), row)
  })
).pipe(Command.withDescription("Lists audit events, newest first."))

const get = Command.make(
  "get",
  { id: idArgument("The event's id, aud_..."), json: jsonFlag },
  Effect.fn(function* ({ id, json }) {
    const api = yield* SeatrialClient
    const event = yield* told(api.org.auditEvents.get(id))
    yield* printRecord(json, event)
  })
).pipe(Command.withDescription("Shows an audit event: what was before, and after."))

export const auditCommand = Command.make("audit").pipe(Command.withDescription("Who changed what in the organization."), Command.withSubcommands([list, get]))
