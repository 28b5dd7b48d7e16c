export { EmbeddedPostgres, type EmbeddedPostgresOptions } from "./postgres/EmbeddedPostgres.ts"
export { PostgresError } from "./postgres/PostgresError.ts"
