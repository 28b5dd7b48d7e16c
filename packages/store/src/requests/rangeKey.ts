/** SQL for the class of a status, which every ended request has. */
const statusClass = "CASE WHEN status_code < 400 THEN '2' WHEN status_code < 500 THEN '4' ELSE '5' END"

/**
 * SQL for what the rows of one range of the request list have in common, as one text: organisation, class of status, and the model or the key or both. Each is the
 * first column of an index of its own. No two queries of the list could use the same index: from several columns, of which a model or a key implies its organisation,
 * the planner takes many ranges for as short as one row, and now and then an index that leaves most rows to a filter.
 */
export const rangeKeys = {
  class: `(org_id || ' ' || ${statusClass})`,
  model: `(org_id || ' ' || ${statusClass} || ' ' || model_id)`,
  key: `(org_id || ' ' || ${statusClass} || ' ' || api_key_id)`,
  model_key: `(org_id || ' ' || ${statusClass} || ' ' || model_id || ' ' || api_key_id)`
} as const
