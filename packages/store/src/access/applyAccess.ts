import { createHash } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { functions, type Role, roles, tables, views } from "./tables.ts"

/** The group role of a program. A login that is a member has its privileges. */
export const roleName = (role: Role): string => `seatrial_${role}`

const setting = "current_setting('seatrial.org_id', true)"

const policiesOf = (table: string): ReadonlyArray<string> => {
  const access = tables[table]
  if (access === undefined || access.tenant === null) return []
  const policy = (role: Role, name: string, rule: string) => `CREATE POLICY ${roleName(role)}_${name} ON ${table} ${rule}`
  const own = `${access.tenant} = ${setting}`
  const unrestricted = roles
    .filter((role) => role !== "server")
    .filter((role) => role === "admin" || access.grants[role] !== undefined)
    .map((role) => policy(role, "all", `FOR ALL TO ${roleName(role)} USING (true) WITH CHECK (true)`))
  const restricted = [`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`, ...unrestricted]
  if (access.grants.server === undefined) return restricted
  return [
    ...restricted,
    policy("server", "own", `FOR ALL TO ${roleName("server")} USING (${own}) WITH CHECK (${own})`),
    ...(access.across !== undefined
      ? [
          policy("server", "across", `FOR SELECT TO ${roleName("server")} USING (${setting} = '*' AND (${access.across}))`),
          ...(access.grants.server.some((grant) => grant === "UPDATE (last_used_at)")
            ? [policy("server", "use", `FOR UPDATE TO ${roleName("server")} USING (${setting} = '*') WITH CHECK (${setting} = '*')`)]
            : [])
        ]
      : [])
  ]
}

const grantsOf = (object: string, grants: Partial<Record<Role, ReadonlyArray<string>>>): ReadonlyArray<string> =>
  roles.flatMap((role) => {
    const privileges = grants[role]
    return [
      `REVOKE ALL ON ${object} FROM ${roleName(role)}`,
      ...(privileges === undefined || privileges.length === 0 ? [] : [`GRANT ${privileges.join(", ")} ON ${object} TO ${roleName(role)}`])
    ]
  })

const everything = ["SELECT", "INSERT", "UPDATE", "DELETE"]

/** The statements that define the access to each object. */
const definitions: ReadonlyArray<readonly [object: string, statements: ReadonlyArray<string>]> = [
  ...Object.entries(tables).map(
    ([table, { grants, migrated }]) =>
      [table, [...grantsOf(table, { ...grants, admin: migrated === true ? ["SELECT"] : everything }), ...policiesOf(table)]] as const
  ),
  ...Object.entries(views).map(([view, { grants }]) => [view, grantsOf(view, { ...grants, admin: ["SELECT"] })] as const),
  ...Object.entries(functions).map(
    ([name, allowed]) =>
      [name, [`REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`, ...allowed.map((role) => `GRANT EXECUTE ON FUNCTION ${name} TO ${roleName(role)}`)]] as const
  )
]

/** SQL condition: the login can set the role. */
const canTake = (name: string) =>
  `pg_has_role(current_user, '${name}', CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)`

/** The names of the roles that do not exist. */
export const missingRoles = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly name: string }>`SELECT rolname::text AS name FROM pg_roles WHERE rolname = ANY(${roles.map(roleName)})`, (rows) =>
    roles.map(roleName).filter((role) => !rows.some(({ name }) => name === role))
  )

/** Creates missing roles. Returns those that the migrating role may not create. */
const ensureRoles = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  for (const role of roles) {
    const name = roleName(role)
    yield* sql.unsafe(`
      DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${name}') THEN
          CREATE ROLE ${name} NOLOGIN;
          -- A database that was restored into another Postgres has the record of its grants, but not the grants.
          DELETE FROM applied_access;
        END IF;
        -- Lets a program with this login set the role of DATABASE_ROLE. Since Postgres 16 the creator of a role may grant it but not set it.
        IF NOT ${canTake(name)} THEN GRANT ${name} TO CURRENT_USER; END IF;
      -- Roles are shared by all databases of a server: another one may be migrated concurrently.
      EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
      END $$`)
  }
  return yield* missingRoles(sql)
})

/** Runs the statements of each object whose applied definition differs. */
const applyChanged = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  desired: ReadonlyArray<readonly [object: string, statements: ReadonlyArray<string>]>,
  before: (object: string) => Effect.Effect<unknown, SqlError.SqlError>
) {
  const applied = yield* sql<{ readonly object: string; readonly definition: string }>`SELECT object, definition FROM applied_access`
  const definitionOf = new Map(applied.map(({ definition, object }) => [object, definition]))
  for (const [object, statements] of desired) {
    const definition = createHash("sha256").update(statements.join(";\n")).digest("hex")
    if (definitionOf.get(object) === definition) continue
    yield* before(object)
    for (const statement of statements) yield* sql.unsafe(statement)
    yield* sql`
      INSERT INTO applied_access (object, definition) VALUES (${object}, ${definition})
      ON CONFLICT (object) DO UPDATE SET definition = excluded.definition`
  }
})

/** Creates the views, again if the columns of their table changed. */
const applyViews = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const desired: Array<readonly [string, ReadonlyArray<string>]> = []
  for (const [view, { definition, table }] of Object.entries(views)) {
    const [row] = yield* sql<{ readonly names: string }>`
      SELECT string_agg(attname::text, ',' ORDER BY attnum) AS names FROM pg_attribute WHERE attrelid = ${table}::regclass AND attnum > 0 AND NOT attisdropped`
    desired.push([`definition of ${view}`, [`CREATE OR REPLACE VIEW ${view} AS ${definition}`, `COMMENT ON VIEW ${view} IS 'of ${row?.names}'`]])
  }
  yield* applyChanged(sql, desired, () => Effect.void)
})

/**
 * Grants each program's role the privileges that it needs, and enables row-level security for the tables of
 * organizations. Part of each migration; changes nothing if the definitions are already applied.
 */
export const applyAccess = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Before the views, because it forgets all applied definitions if it creates a role.
  const missing = yield* ensureRoles(sql)
  yield* applyViews(sql)
  if (missing.length > 0) {
    return yield* Effect.logWarning(
      `Roles are missing, and the migrating role may not create them: ${missing.join(", ")}. Create them (NOLOGIN), or give it CREATEROLE, and run \`seatrial migrate\` again. Until then programs have the privileges of their login.`
    )
  }
  const dropPolicies = Effect.fnUntraced(function* (object: string) {
    const policies = yield* sql<{
      readonly name: string
    }>`SELECT policyname AS name FROM pg_policies WHERE schemaname = current_schema() AND tablename = ${object}`
    for (const { name } of policies) yield* sql`DROP POLICY ${sql(name)} ON ${sql(object)}`
  })
  yield* applyChanged(sql, definitions, dropPolicies)
}).pipe(Effect.withSpan("Database.applyAccess"))
