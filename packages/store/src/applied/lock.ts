import type { PgClient } from "@effect/sql-pg"
import type { ResourcePlace } from "../AppliedResources.ts"

/** Locks the object until the transaction ends, even if nothing is stored about it yet. */
export const lockResource = (sql: PgClient.PgClient, { name, namespace }: ResourcePlace) =>
  sql`SELECT pg_advisory_xact_lock(hashtextextended(${`modeldeployments/${namespace}/${name}`}, 0))`
