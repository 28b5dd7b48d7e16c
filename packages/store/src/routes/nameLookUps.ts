import type { PgClient } from "@effect/sql-pg"
import type { OrgId } from "@seatrial/domain"
import { Deferred, Effect, PartitionedSemaphore } from "effect"
import type { SqlError } from "effect/sql"
import type { AbsentNames } from "./AbsentNames.ts"
import { callableBy } from "./callableBy.ts"

/** What the database has of a callable name; `ready`: an engine that a gateway has reached. */
export interface StoredName {
  readonly ready: boolean
}

/** Longest name that is looked up, in characters: more than an organization's and a model's slug have together. */
const maxLength = 512

/** Queries at once, of all organizations together. */
const maxQueries = 4

/** The row of a callable name that is routed to; none if there is no such model, or it is not served. */
export const findName = (sql: PgClient.PgClient, orgId: OrgId, model: string) => sql<StoredName>`
  SELECT EXISTS (SELECT FROM endpoints e WHERE e.org_id = m.org_id AND e.revision_id = m.active_revision_id AND e.reachable_at IS NOT NULL) AS ready
  FROM models m JOIN organizations o ON o.id = m.org_id
  WHERE ${callableBy(sql, orgId, model)} AND m.active_revision_id IS NOT NULL AND m.status = 'active' AND m.deleted_at IS NULL AND o.status = 'active'
  LIMIT 1`

export interface NameLookUps {
  readonly absent: AbsentNames
  /** What the database has of the name. */
  readonly query: (orgId: OrgId, model: string) => Effect.Effect<StoredName | undefined, SqlError.SqlError>
  /** Whether memory lacks what the database has. */
  readonly isNews: (orgId: OrgId, model: string, stored: StoredName | undefined) => boolean
  /** Reads all routes. */
  readonly reload: Effect.Effect<void, SqlError.SqlError>
}

/**
 * Looks names up that memory does not have, or has without an engine. A name costs one query until routes change; requests with the same name share it. Organizations take
 * turns, so that one that sends many names delays no other by more than a query. Only a name that the database knows more of than memory has all routes read.
 */
export const makeNameLookUps = Effect.fnUntraced(function* ({ absent, isNews, query, reload }: NameLookUps) {
  const scope = yield* Effect.scope
  const turns = yield* PartitionedSemaphore.make<OrgId>({ permits: maxQueries })
  const underWay = new Map<string, { readonly generation: number; readonly done: Deferred.Deferred<void> }>()

  const lookUp = Effect.fnUntraced(function* (orgId: OrgId, model: string) {
    const { generation } = absent
    const stored = yield* turns.withPermit(orgId)(query(orgId, model))
    if (isNews(orgId, model, stored)) yield* reload
    // Also if the reading left it out: a row that cannot be read stays so until it changes.
    if (isNews(orgId, model, stored) || stored === undefined || !stored.ready) absent.add(orgId, model, generation)
  })

  return (orgId: OrgId, model: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (absent.has(orgId, model) || model.length > maxLength || model.includes("\0")) return Effect.void
      const name = `${orgId}\n${model}`
      const shared = underWay.get(name)
      if (shared !== undefined && shared.generation === absent.generation) return Deferred.await(shared.done)
      const entry = { generation: absent.generation, done: Deferred.makeUnsafe<void>() }
      underWay.set(name, entry)
      const settled = lookUp(orgId, model).pipe(
        Effect.catch((error) => Effect.logWarning(`The routes could not be read; those known stay in use (${error.message})`)),
        Effect.onExit((exit) => {
          if (underWay.get(name) === entry) underWay.delete(name)
          return Deferred.done(entry.done, exit)
        })
      )
      return Effect.andThen(Effect.forkIn(Effect.ignoreCause(settled), scope), Deferred.await(entry.done))
    })
})
