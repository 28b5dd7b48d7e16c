/** SQL for the sums of ended requests. The sums are exact because only integers are added. */
export const sumColumns = `count(*) AS requests, count(*) FILTER (WHERE state = 'refused') AS refused, coalesce(sum(input_tokens::bigint), 0) AS input_tokens,
  coalesce(sum(output_tokens::bigint), 0) AS output_tokens, coalesce(sum(cache_read_tokens::bigint), 0) AS cache_read_tokens,
  coalesce(sum(cache_write_tokens::bigint), 0) AS cache_write_tokens, coalesce(sum(cost_micros), 0) AS cost_micros`

/** SQL for the UTC day of a request. */
export const requestDay = "(created_at AT TIME ZONE 'UTC')::date"
