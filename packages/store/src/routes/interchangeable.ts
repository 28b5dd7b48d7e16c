import { ownSampling } from "@seatrial/domain"

/** The sampling defaults that a revision applies. */
export const sampling = (revision: string) => {
  const own = ownSampling.map(({ flag, value }) => `WHEN ${revision}.settings #>> '{engine_flags,${flag}}' = '${value}' THEN '{}'`)
  return `CASE ${own.join(" ")} ELSE ${revision}.sampling END`
}

const same = (one: string, other: string, columns: ReadonlyArray<string>) =>
  columns.map((column) => `${one}.${column} IS NOT DISTINCT FROM ${other}.${column}`).join(" AND ")

/**
 * Whether engines of an earlier revision may answer requests that were checked for the serving revision `next`: they
 * take the same requests in the same form, and at the same prices. Expects the model as `m`. A model that may idle moves
 * at once. So does a model with one engine, because its activation withdraws the earlier revision.
 */
export const interchangeable = (next: string, earlier: string): string => `
  (m.status = 'active' AND m.deleted_at IS NULL AND ${earlier}.status = 'superseded'
    AND ${same(next, earlier, ["runtime", "capabilities", "knows_developer", "input_micros_per_mtok", "output_micros_per_mtok", "cache_read_micros_per_mtok", "cache_write_micros_per_mtok"])}
    AND ${earlier}.max_model_len >= ${next}.max_model_len AND (${earlier}.base_hf_revision IS NULL) = (${next}.base_hf_revision IS NULL)
    AND ${sampling(next)} IS NOT DISTINCT FROM ${sampling(earlier)}
    AND NOT jsonb_exists(${next}.settings, 'hold_seconds') AND NOT jsonb_exists(${earlier}.settings, 'hold_seconds'))`
