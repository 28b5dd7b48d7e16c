import { PgClient } from "@effect/sql-pg"
import type { ModelId, OrgId, RevisionId } from "@seatrial/domain"
import { Effect } from "effect"

/**
 * Copies a served model with its revision the given number of times. The copies are served as `<prefix>-1`,
 * `<prefix>-2` and so on, and have no engine.
 */
export const copyModel = Effect.fnUntraced(function* (
  { modelId, orgId, revisionId }: { readonly modelId: ModelId; readonly orgId: OrgId; readonly revisionId: RevisionId },
  prefix: string,
  count: number
) {
  const sql = yield* PgClient.PgClient
  const copy = Effect.fnUntraced(function* (table: string, id: string, values: Readonly<Record<string, string>>) {
    const columns = yield* sql<{ readonly name: string }>`
      SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ${table} AND is_generated = 'NEVER'`
    yield* sql`
      INSERT INTO ${sql(table)} (${sql.literal(columns.map(({ name }) => name).join(", "))})
      SELECT ${sql.literal(columns.map(({ name }) => values[name] ?? `t.${name}`).join(", "))}
      FROM ${sql(table)} t, generate_series(1, ${count}::integer) n WHERE t.id = ${id}`
  })
  const numbered = (kind: string) => `'${kind}_' || lpad(n::text, 26, '0')`
  yield* copy("models", modelId, { id: numbered("mdl"), slug: `'${prefix}-' || n`, active_revision_id: "NULL" })
  yield* copy("revisions", revisionId, { id: numbered("rev"), model_id: numbered("mdl") })
  yield* sql`UPDATE models SET active_revision_id = replace(id, 'mdl', 'rev') WHERE active_revision_id IS NULL AND org_id = ${orgId} AND slug LIKE ${`${prefix}-%`}`
  yield* sql`ANALYZE models, revisions`
  yield* sql`SELECT pg_notify('routes', '')`
})
