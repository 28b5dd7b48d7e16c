/**
 * What the engine of a revision `r` was seen to work on at once: whole contexts that its cache holds, or the highest step of its benchmark that had no error, whichever is
 * more, and never more than the slots that it was started with.
 */
export const measuredConcurrency = `
  (SELECT CASE WHEN m.most IS NOT NULL THEN
      greatest(1, least(m.most, (r.settings #>> '{engine_flags,max_num_seqs}')::float8, (r.settings #>> '{engine_flags,max_running_requests}')::float8))::int END
    FROM (SELECT greatest(floor((r.measured ->> 'max_concurrency')::float8),
      (SELECT max((step ->> 'concurrency')::int) FROM jsonb_array_elements(r.benchmark -> 'steps') step WHERE (step ->> 'errors')::int = 0)) AS most) m)`

/** Seconds that the engine of a revision `r` takes to start: the median of its last five starts; where none was seen, its loading and its boot. */
export const measuredStart = `
  coalesce(
    CASE WHEN jsonb_exists(r.settings, 'hold_seconds') THEN
      (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seen.seconds) FROM (
        SELECT coalesce((s.parts ->> 'image_pull')::float8, 0) + coalesce((s.parts ->> 'weights_to_node')::float8, 0)
          + (s.parts ->> 'process_to_loaded')::float8 + (s.parts ->> 'loaded_to_ready')::float8 AS seconds
        FROM engine_starts s WHERE s.org_id = r.org_id AND s.revision_id = r.id ORDER BY s.created_at DESC, s.pod_uid LIMIT 5) seen)
    END,
    (r.measured ->> 'load_seconds')::float8 + coalesce((r.measured ->> 'boot_seconds')::float8, 0))`
