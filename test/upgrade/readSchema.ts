import { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"

const Objects = Schema.Array(Schema.Struct({ name: Schema.String, definition: Schema.String }))

/** SQL for privileges, in an order that does not depend on the order of the grants. */
const privileges = (acl: string) => `(SELECT string_agg(entry::text, ' ' ORDER BY entry::text) FROM unnest(${acl}) entry)`

/**
 * The definition of every object in the schema `public`, as text: what `pg_dump --schema-only` compares, from the same
 * catalogs. White space in functions is ignored.
 */
export const readSchema = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql.unsafe(`
    WITH relations AS (SELECT * FROM pg_class WHERE relnamespace = 'public'::regnamespace),
    objects (name, parts) AS (
      SELECT 'relation ' || relname, ARRAY[relkind::text, relpersistence::text, array_to_string(reloptions, ','), relrowsecurity::text, relforcerowsecurity::text,
        relowner::regrole::text, ${privileges("relacl")}, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid), obj_description(oid, 'pg_class'),
        CASE WHEN relkind = 'v' THEN pg_get_viewdef(oid) END]
      FROM relations
      UNION ALL
      SELECT 'column ' || c.relname || '.' || lpad(a.attnum::text, 3, '0'), ARRAY[a.attname::text, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation::text,
        a.attnotnull::text, a.attidentity::text, a.attgenerated::text, a.attstorage::text, pg_get_expr(d.adbin, d.adrelid), ${privileges("a.attacl")}, col_description(c.oid, a.attnum)]
      FROM relations c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      UNION ALL
      SELECT 'constraint ' || conrelid::regclass || '.' || conname, ARRAY[pg_get_constraintdef(oid), convalidated::text]
      FROM pg_constraint WHERE connamespace = 'public'::regnamespace
      UNION ALL
      SELECT 'index ' || indexrelid::regclass, ARRAY[pg_get_indexdef(indexrelid), indisvalid::text] FROM pg_index WHERE indrelid IN (SELECT oid FROM relations)
      UNION ALL
      SELECT 'sequence ' || sequencename, ARRAY[data_type::text, start_value::text, increment_by::text, min_value::text, max_value::text, cache_size::text, cycle::text]
      FROM pg_sequences WHERE schemaname = 'public'
      UNION ALL
      SELECT 'trigger ' || tgrelid::regclass || '.' || tgname, ARRAY[pg_get_triggerdef(oid), tgenabled::text] FROM pg_trigger
      WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM relations)
      UNION ALL
      SELECT 'function ' || oid::regprocedure, ARRAY[regexp_replace(pg_get_functiondef(oid), '\\s+', ' ', 'g'), proowner::regrole::text, ${privileges("proacl")}]
      FROM pg_proc WHERE pronamespace = 'public'::regnamespace
      UNION ALL
      SELECT 'policy ' || tablename || '.' || policyname, ARRAY[permissive, array_to_string(roles, ','), cmd, qual, with_check] FROM pg_policies WHERE schemaname = 'public'
      UNION ALL
      SELECT 'migration ' || migration_id, ARRAY[name] FROM migrations
      UNION ALL
      SELECT 'access ' || object, ARRAY[definition] FROM applied_access
    )
    SELECT name, array_to_string(parts, ' | ', '-') AS definition FROM objects ORDER BY name COLLATE "C"`)
  return yield* Schema.decodeUnknownEffect(Objects)(rows)
})
