export type { HubFault, HubRequest } from "./hub/HubFault.ts"
export { SampleHub } from "./hub/SampleHub.ts"
export { EmbeddedPostgres, type EmbeddedPostgresOptions } from "./postgres/EmbeddedPostgres.ts"
export { PostgresError } from "./postgres/PostgresError.ts"
