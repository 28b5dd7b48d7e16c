import type { PgClient } from "@effect/sql-pg"
import { type Calibration, calibrationOf, FitComponents, Measured, type OrgId } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"

/** Starts that are looked at, the newest. */
const looked = 32

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
 * What starts of an architecture took, of the organization's own: those whose engine told, and whose estimate says of what it was made. That another organization has
 * started the same is not to be seen, not even by a narrower estimate.
 */
export const measuredStarts = (sql: PgClient.PgClient) => {
  const decode = Schema.decodeUnknownOption(Row)
  return Effect.fnUntraced(function* (orgId: OrgId, architecture: string) {
    const rows = yield* sql`
      SELECT gpu_pool AS "gpuPool", gpu_count AS "gpuCount", engine_version AS "engineVersion",
        coalesce(settings #>> '{engine_flags,quantization}', quantization) AS quantization, (estimate ->> 'weights_bytes')::float8 AS "weightsBytes",
        estimate -> 'components' AS components, measured
      FROM revisions WHERE org_id = ${orgId} AND facts #>> '{config,architecture}' = ${architecture} AND measured IS NOT NULL
      ORDER BY created_at DESC LIMIT ${looked}`
    return rows.flatMap((row): ReadonlyArray<Calibration> => {
      const start = Option.getOrNull(decode(row))
      if (start === null) return []
      const { engineVersion, gpuCount, gpuPool, quantization, ...told } = start
      const calibration = calibrationOf({ architecture, gpu_pool: gpuPool, gpu_count: gpuCount, engine_version: engineVersion, quantization }, told)
      return calibration === null ? [] : [calibration]
    })
  }, Effect.orDie)
}
