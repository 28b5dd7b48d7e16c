import type { PgClient } from "@effect/sql-pg"
import type { OrgId } from "@seatrial/domain"
import { Cause, Deferred, Effect, PartitionedSemaphore } from "effect"
import type { SqlError } from "effect/sql"
import { makeOutageLog } from "../outageLog.ts"
import type { AbsentNames } from "./AbsentNames.ts"
import { callableBy } from "./callableBy.ts"

/** The stored state of a callable name. `ready`: it has an engine that a gateway has reached. */
export interface StoredName {
  readonly ready: boolean
}

/** Maximum length of a name that is looked up, in characters: longer than any two slugs together. */
const maxLength = 512

/** Maximum number of concurrent queries, of all organizations together. */
const maxQueries = 4

/** The row of a callable name that is routed; none if the model does not exist or is not served. */
export const findName = (sql: PgClient.PgClient, orgId: OrgId, model: string) => sql<StoredName>`
  SELECT EXISTS (SELECT FROM endpoints e WHERE e.org_id = m.org_id AND e.revision_id = m.active_revision_id AND e.reachable_at IS NOT NULL) AS ready
  FROM models m JOIN organizations o ON o.id = m.org_id
  WHERE ${callableBy(sql, orgId, model)} AND m.active_revision_id IS NOT NULL AND m.status = 'active' AND m.deleted_at IS NULL AND o.status = 'active'
  LIMIT 1`

export interface NameLookUps {
  readonly absent: AbsentNames
  /** Reads the stored state of the name. */
  readonly query: (orgId: OrgId, model: string) => Effect.Effect<StoredName | undefined, SqlError.SqlError>
  /** Whether the stored state is newer than memory. */
  readonly isNews: (orgId: OrgId, model: string, stored: StoredName | undefined) => boolean
  /** Reads all routes. */
  readonly reload: Effect.Effect<void, SqlError.SqlError>
}

/**
 * Looks up names that memory does not have, or has without an engine. A name costs one query until routes change, and
 * requests with the same name share it. Organizations take turns, so that an organization with many names delays
 * another by at most one query. All routes are read only if the stored state of a name is newer than memory.
 */
export const makeNameLookUps = Effect.fnUntraced(function* ({ absent, isNews, query, reload }: NameLookUps) {
  const scope = yield* Effect.scope
  const log = makeOutageLog("Could not read the routes; using the previous ones")
  const turns = yield* PartitionedSemaphore.make<OrgId>({ permits: maxQueries })
  const pending = new Map<string, { readonly generation: number; readonly done: Deferred.Deferred<void> }>()

  const lookUp = Effect.fnUntraced(function* (orgId: OrgId, model: string) {
    const { generation } = absent
    const stored = yield* turns.withPermit(orgId)(query(orgId, model))
    if (isNews(orgId, model, stored)) yield* reload
    // Also if the read omitted the name: a row that cannot be decoded stays so until it changes.
    if (isNews(orgId, model, stored) || stored === undefined || !stored.ready) absent.add(orgId, model, generation)
  })

  return (orgId: OrgId, model: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (absent.has(orgId, model) || model.length > maxLength || model.includes("\0")) return Effect.void
      const name = `${orgId}\n${model}`
      const shared = pending.get(name)
      if (shared !== undefined && shared.generation === absent.generation) return Deferred.await(shared.done)
      const entry = { generation: absent.generation, done: Deferred.makeUnsafe<void>() }
      pending.set(name, entry)
      const settled = lookUp(orgId, model).pipe(
        Effect.catch((error) => log(Cause.fail(error))),
        Effect.onExit((exit) => {
          if (pending.get(name) === entry) pending.delete(name)
          return Deferred.done(entry.done, exit)
        })
      )
      return Effect.andThen(Effect.forkIn(Effect.ignoreCause(settled), scope), Deferred.await(entry.done))
    })
})
