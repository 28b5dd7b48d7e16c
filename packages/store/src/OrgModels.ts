import { PgClient } from "@effect/sql-pg"
import type { ModelId, ModelStatus, OrgId, OrgModel, Revision, Visibility } from "@seatrial/domain"
import { Context, Effect, Layer, Option } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { revisionJson } from "./columns.ts"
import { afterPosition, type Page, type PageRequest, pageOf } from "./Page.ts"

export interface OrgModelQuery extends PageRequest {
  readonly status?: ModelStatus
  readonly visibility?: Visibility
  /** Matches a part of slug, display name or repository, case-insensitively; no character is special. */
  readonly q?: string
}

/** A row as the driver returns it. It is not decoded: a test checks the responses against the schema of the record. */
interface OrgModelRow {
  readonly id: string
  readonly slug: string
  readonly display_name: string
  readonly status: ModelStatus
  readonly visibility: Visibility
  readonly hf_repo: string
  readonly hf_revision: string
  readonly created_at: Date
  readonly updated_at: Date
  readonly revision: Revision | null
}

const recordOf = (row: OrgModelRow): OrgModel => ({
  id: row.id,
  object: "org_model",
  slug: row.slug,
  display_name: row.display_name,
  status: row.status,
  visibility: row.visibility,
  hf_repo: row.hf_repo,
  hf_revision: row.hf_revision,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  revision: row.revision
})

// The newest revision is read only if none serves.
const columns = `
  m.id, m.slug, m.display_name, m.status, m.visibility, m.hf_repo, m.created_at, m.updated_at, ${revisionJson} AS revision,
    coalesce(
      r.hf_revision,
      (SELECT n.hf_revision FROM revisions n WHERE n.org_id = m.org_id AND n.model_id = m.id ORDER BY n.created_at DESC, n.id DESC LIMIT 1),
      m.hf_revision,
      ''
    ) AS hf_revision`
const serving = "LEFT JOIN revisions r ON r.org_id = m.org_id AND r.id = m.active_revision_id"

/**
 * One page of models that are not deleted, plus one row; the limit applies before the join. `strpos` has no wildcards,
 * so `q` needs no escaping.
 */
export const listStatement = <Row extends object>(sql: SqlClient.SqlClient, orgId: OrgId, query: OrgModelQuery): Statement.Statement<Row> => {
  const clauses = [sql`m.org_id = ${orgId} AND m.deleted_at IS NULL`, ...afterPosition(sql, "m", query.after)]
  if (query.status !== undefined) clauses.push(sql`m.status = ${query.status}`)
  if (query.visibility !== undefined) clauses.push(sql`m.visibility = ${query.visibility}`)
  if (query.q !== undefined) {
    const holds = (column: string) => sql`strpos(lower(${sql.literal(column)}), lower(${query.q})) > 0`
    clauses.push(sql.or([holds("m.slug"), holds("m.display_name"), holds("m.hf_repo")]))
  }
  return sql<Row>`
    SELECT ${sql.literal(columns)}
    FROM (SELECT * FROM models m WHERE ${sql.and(clauses)} ORDER BY m.created_at DESC, m.id DESC LIMIT ${query.limit + 1}) m ${sql.literal(serving)}
    ORDER BY m.created_at DESC, m.id DESC`
}

/** The organization's models as the API returns them, without deleted ones. */
export class OrgModels extends Context.Service<
  OrgModels,
  {
    readonly list: (orgId: OrgId, query: OrgModelQuery) => Effect.Effect<Page<OrgModel>>
    readonly find: (orgId: OrgId, id: ModelId) => Effect.Effect<Option.Option<OrgModel>>
  }
>()("seatrial/OrgModels") {
  static readonly layerSql = Layer.effect(
    OrgModels,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient

      return OrgModels.of({
        list: Effect.fn("OrgModels.list")(function* (orgId, query) {
          // Postgres text cannot contain NUL, so no name matches.
          if (query.q?.includes("\0")) return { items: [], next: null }
          const rows = yield* Effect.orDie(listStatement<OrgModelRow>(sql, orgId, query))
          return pageOf(rows.map(recordOf), query.limit)
        }),
        find: Effect.fn("OrgModels.find")(function* (orgId, id) {
          const rows = sql<OrgModelRow>`
            SELECT ${sql.literal(columns)} FROM models m ${sql.literal(serving)} WHERE m.org_id = ${orgId} AND m.id = ${id} AND m.deleted_at IS NULL`
          return Option.map(Option.fromUndefinedOr((yield* Effect.orDie(rows))[0]), recordOf)
        })
      })
    })
  )
}
