import { slotFlags } from "@seatrial/domain"

const slots = slotFlags.map((flag) => `(r.settings #>> '{engine_flags,${flag}}')::float8`)

/**
 * Measured concurrency of the engine of a revision `r`: the number of full contexts that fit in its cache, or the
 * highest benchmark step without errors, whichever is higher, but at most its number of slots.
 */
export const measuredConcurrency = `
  (SELECT CASE WHEN m.most IS NOT NULL THEN
      greatest(1, least(m.most, ${slots.join(", ")}))::int END
    FROM (SELECT greatest(floor((r.measured ->> 'max_concurrency')::float8),
      (SELECT max((step ->> 'concurrency')::int) FROM jsonb_array_elements(r.benchmark -> 'steps') step WHERE (step ->> 'errors')::int = 0)) AS most) m)`

/**
 * Start time of the engine of a revision `r`, seconds: the median of its last five starts, or its measured loading and
 * boot if no start was recorded.
 */
export const measuredStart = `
  coalesce(
    CASE WHEN jsonb_exists(r.settings, 'hold_seconds') THEN
      (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY recent.seconds) FROM (
        SELECT coalesce((s.parts ->> 'image_pull')::float8, 0) + coalesce((s.parts ->> 'weights_to_node')::float8, 0)
          + (s.parts ->> 'process_to_loaded')::float8 + (s.parts ->> 'loaded_to_ready')::float8 AS seconds
        FROM engine_starts s WHERE s.org_id = r.org_id AND s.revision_id = r.id ORDER BY s.created_at DESC, s.pod_uid LIMIT 5) recent)
    END,
    (r.measured ->> 'load_seconds')::float8 + coalesce((r.measured ->> 'boot_seconds')::float8, 0))`
