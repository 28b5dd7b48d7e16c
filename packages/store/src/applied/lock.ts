import type { PgClient } from "@effect/sql-pg"
import type { ResourcePlace } from "../AppliedResources.ts"

/** Lets nobody else decide about the object until the transaction ends, also where nothing is written of it yet. */
export const lockResource = (sql: PgClient.PgClient, { name, namespace }: ResourcePlace) =>
  sql`SELECT pg_advisory_xact_lock(hashtextextended(${`modeldeployments/${namespace}/${name}`}, 0))`
