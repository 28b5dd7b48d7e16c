/** SQL for the status class of a request; every ended request has one. */
const statusClass = "CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END"

/**
 * SQL for the common key of one range of the request list, as one text: organization, status class, and model or API
 * key or both. Each is the first column of a separate index, and no two queries of the list can use the same index.
 * With several columns, of which a model or API key implies the organization, the planner underestimates many ranges as
 * a single row and sometimes chooses an index that leaves most rows to a filter.
 */
export const rangeKeys = {
  class: `(org_id || ' ' || ${statusClass})`,
  model: `(org_id || ' ' || ${statusClass} || ' ' || model_id)`,
  key: `(org_id || ' ' || ${statusClass} || ' ' || api_key_id)`,
  model_key: `(org_id || ' ' || ${statusClass} || ' ' || model_id || ' ' || api_key_id)`
} as const
