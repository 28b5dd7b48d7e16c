import { type AuditEventsQuery, Caller } from "@seatrial/api"
import { AuditEventId, UserId } from "@seatrial/domain"
import { AuditEvents } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { emptyPage, pageResponses } from "./lists.ts"
import { invalidParameter, notFound } from "./publicErrors.ts"

const isAuditEventId = Schema.is(AuditEventId)
const isUserId = Schema.is(UserId)

/**
 * Whether an event can have this actor: a user, or an administrator `admin:NAME`. Postgres stores no NUL characters.
 */
const isActor = (text: string) => isUserId(text) || (text.startsWith("admin:") && !text.includes("\0"))

/** Operations that read audit events. */
export const auditEventReads = Effect.gen(function* () {
  const events = yield* AuditEvents
  const respondWithPage = yield* pageResponses

  return {
    list: Effect.fnUntraced(function* ({ query }: { readonly query: AuditEventsQuery }) {
      const { actor_user_id: actorUserId, from, resource_type: resourceType, to } = query
      if (from !== undefined && to !== undefined && to <= from) return yield* invalidParameter("to", "to must be later than from.")
      return yield* respondWithPage(
        "listAuditEvents",
        query,
        (orgId, page) => {
          if (actorUserId !== undefined && !isActor(actorUserId)) return Effect.succeed(emptyPage)
          return events.list(orgId, {
            ...page,
            ...(actorUserId === undefined ? {} : { actorUserId }),
            ...(resourceType === undefined ? {} : { resourceType }),
            ...(from === undefined ? {} : { from }),
            ...(to === undefined ? {} : { to })
          })
        },
        (row) => row
      )
    }),
    get: Effect.fnUntraced(function* ({ params }: { readonly params: { readonly id: string } }) {
      const { orgId } = yield* Caller
      const event = isAuditEventId(params.id) ? yield* events.find(orgId, params.id) : Option.none()
      if (Option.isNone(event)) return yield* notFound
      return HttpServerResponse.jsonUnsafe(event.value)
    })
  }
})
