import type { PgClient } from "@effect/sql-pg"
import { type Calibration, calibrationOf, FitComponents, Measured, type OrgId } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"

/**
 * How many of the newest starts are read, and how many of one key are returned: enough for a calibration, and no key
 * displaces another.
 */
const maxStarts = 512
const ofOneKey = 10

const Row = Schema.Struct({
  gpuPool: Schema.String,
  gpuCount: Schema.Int,
  engineVersion: Schema.String,
  quantization: Schema.String,
  weightsBytes: Schema.Finite,
  components: FitComponents,
  measured: Measured
})

/**
 * Start times of an architecture, of the organization only: starts whose engine reported its times and whose estimate
 * has components. Starts of other organizations must not be visible, not even through a narrower estimate.
 */
export const measuredStarts = (sql: PgClient.PgClient) => {
  const decode = Schema.decodeUnknownOption(Row)
  return Effect.fnUntraced(function* (orgId: OrgId, architecture: string) {
    const rows = yield* sql`
      WITH newest AS (
        SELECT created_at, gpu_pool, gpu_count, engine_version, coalesce(settings #>> '{engine_flags,quantization}', quantization) AS held, weights_bytes, components, measured
        FROM (
          SELECT created_at, gpu_pool, gpu_count, engine_version, settings, quantization, (estimate ->> 'weights_bytes')::float8 AS weights_bytes,
            estimate -> 'components' AS components, measured
          FROM revisions WHERE org_id = ${orgId} AND facts #>> '{config,architecture}' = ${architecture} AND measured IS NOT NULL
          ORDER BY created_at DESC LIMIT ${maxStarts}
        ) AS starts
        WHERE measured ->> 'kv_cache_bytes' IS NOT NULL AND components ->> 'stepTokens' IS NOT NULL
      ), ranked AS (
        SELECT *, row_number() OVER (PARTITION BY gpu_pool, gpu_count, engine_version, held, components ->> 'stepTokens' ORDER BY created_at DESC) AS place FROM newest
      )
      SELECT gpu_pool AS "gpuPool", gpu_count AS "gpuCount", engine_version AS "engineVersion", held AS quantization, weights_bytes AS "weightsBytes", components, measured
      FROM ranked WHERE place <= ${ofOneKey} ORDER BY created_at DESC`
    return rows.flatMap((row): ReadonlyArray<Calibration> => {
      const start = Option.getOrNull(decode(row))
      if (start === null) return []
      const { engineVersion, gpuCount, gpuPool, quantization, ...times } = start
      const calibration = calibrationOf({ architecture, gpu_pool: gpuPool, gpu_count: gpuCount, engine_version: engineVersion, quantization }, times)
      return calibration === null ? [] : [calibration]
    })
  }, Effect.orDie)
}
