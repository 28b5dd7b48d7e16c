/** SQL for an engine as records of requests name it: the UID of its pod. Null if Kubernetes did not give it. */
export const engineOf = (podUid: string): string => `CASE WHEN ${podUid} ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN ${podUid}::uuid END`

/**
 * SQL for the common key of the requests of one organization that one engine answered: 8 bytes instead of 47, because
 * each request has an entry in the index `requests_engine`.
 */
export const engineKey = (orgId: string, engine: string): string => `uuid_hash_extended(${engine}, hashtextextended(${orgId}, 0))`
