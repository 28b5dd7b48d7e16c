import { type Phase, Timestamp } from "@seatrial/domain"
import { Schema, SchemaGetter } from "effect"

/** A `timestamptz(3)` column in wire format. */
export const IsoFromDate = Schema.Date.pipe(
  Schema.decodeTo(Timestamp, {
    decode: SchemaGetter.transform((date: Date) => date.toISOString()),
    encode: SchemaGetter.transform((text: string) => new Date(text))
  })
)

/** A `timestamptz(3)` column as Unix milliseconds. */
export const MillisFromDate = Schema.Date.pipe(
  Schema.decodeTo(Schema.Finite, {
    decode: SchemaGetter.transform((date: Date) => date.getTime()),
    encode: SchemaGetter.transform((millis: number) => new Date(millis))
  })
)

/** SQL for a list of phases, for `IN (...)`. */
export const phaseList = (phases: ReadonlyArray<Phase>): string => phases.map((phase) => `'${phase}'`).join(", ")

/** SQL for a time column inside JSON, because Postgres' default format differs from the wire format. */
export const isoText = (column: string): string => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** SQL for the callable name of the model `m` of the organization `o`. */
export const callableName = "CASE m.visibility WHEN 'public' THEN m.slug ELSE o.slug || '/' || m.slug END"

/** SQL for the wire object of the revision `r`; null if there is none. */
export const revisionJson = `CASE WHEN r.id IS NOT NULL THEN json_build_object(
  'id', r.id,
  'status', r.status,
  'hf_revision', r.hf_revision,
  'dtype', r.dtype,
  'quantization', r.quantization,
  'max_model_len', r.max_model_len,
  'engine', r.runtime,
  'engine_version', r.engine_version,
  'gpu_pool', r.gpu_pool,
  'gpu_count', r.gpu_count,
  'prices', json_build_object(
    'input_micros_per_mtok', r.input_micros_per_mtok::text,
    'output_micros_per_mtok', r.output_micros_per_mtok::text,
    'cache_read_micros_per_mtok', r.cache_read_micros_per_mtok::text,
    'cache_write_micros_per_mtok', r.cache_write_micros_per_mtok::text
  ),
  'verified_at', ${isoText("r.verified_at")}
) END`
