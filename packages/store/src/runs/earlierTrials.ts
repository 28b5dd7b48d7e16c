import type { PgClient } from "@effect/sql-pg"
import { quantizesAtStart, StoredCheckReport, settingsWithoutEffect } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import type { Runs } from "../Runs.ts"
import type { RunRevision } from "./Run.ts"

/** How many of the newest trials are read. */
const maxTrials = 8

const Row = Schema.Struct({
  otherEngine: Schema.NullOr(Schema.String),
  checks: StoredCheckReport,
  likelihood: Schema.NullOr(Schema.Array(Schema.Array(Schema.Finite)))
})

/**
 * Whether another engine version computes the same except for rounding. For quantized models it may choose other
 * kernels, which changes more.
 */
const isUnquantized = ({ facts, settings }: Pick<RunRevision, "facts" | "settings">): boolean =>
  facts.config.quantization === "none" && settings.kv_cache_dtype === "auto" && !quantizesAtStart(settings)

/**
 * Trials to compare a new trial with: the organization's own verified revisions of the same commit, GPU type and
 * settings, with any image. Trials of the same engine version come first. Trials of other versions are included only if
 * nothing is quantized and their model was not deleted since: deleting a model disowns its trials. Trials of other
 * organizations are never read.
 */
export const earlierTrials = (sql: PgClient.PgClient): Runs["Service"]["earlierTrials"] => {
  const decode = Schema.decodeUnknownOption(Row)
  return Effect.fn("Runs.earlierTrials")(function* (orgId, revision) {
    const { engineVersion, estimate, facts, id, settings } = revision
    const base = facts.adapter?.base
    const rows = yield* Effect.orDie(sql`
      SELECT checks, likelihood, nullif(engine_version, ${engineVersion}) AS "otherEngine" FROM revisions
      WHERE org_id = ${orgId} AND hf_repo = ${facts.repo} AND hf_revision = ${facts.commit} AND gpu_pool = ${estimate.gpu_pool} AND gpu_count = ${estimate.gpu_count}
        AND checks IS NOT NULL AND verified_at IS NOT NULL AND id <> ${id} AND (engine_version = ${engineVersion} OR ${isUnquantized(revision)} AND
          EXISTS (SELECT 1 FROM models WHERE models.org_id = revisions.org_id AND models.id = revisions.model_id AND deleted_at IS NULL))
        AND settings - ${settingsWithoutEffect}::text[] = ${sql.json(settings)} - ${settingsWithoutEffect}::text[]
        AND base_hf_repo IS NOT DISTINCT FROM ${base?.repo ?? null} AND base_hf_revision IS NOT DISTINCT FROM ${base?.commit ?? null}
      ORDER BY engine_version = ${engineVersion} DESC, created_at DESC LIMIT ${maxTrials}`)
    return rows.flatMap((row) => {
      const trial = Option.getOrNull(decode(row))
      // Another version of the suite may contain other requests.
      return trial === null
        ? []
        : [
            {
              otherEngine: trial.otherEngine,
              suite: trial.checks.suite,
              suiteVersion: trial.checks.suite_version,
              loadedChecksum: trial.checks.loaded_checksum ?? null,
              fingerprints: trial.checks.fingerprints,
              likelihood: trial.likelihood
            }
          ]
    })
  })
}

const LikelihoodRow = Row.mapFields(({ likelihood }) => ({ likelihood, suiteVersion: Schema.Int }))

/** The likelihoods of a revision's own trial, and the version of its suite. */
export const trialLikelihood = (sql: PgClient.PgClient): Runs["Service"]["likelihood"] => {
  const decode = Schema.decodeUnknownOption(LikelihoodRow)
  return Effect.fn("Runs.likelihood")(function* (orgId, revision) {
    const [row] = yield* Effect.orDie(sql`
      SELECT likelihood, (checks ->> 'suite_version')::int AS "suiteVersion" FROM revisions WHERE org_id = ${orgId} AND id = ${revision}`)
    return Option.getOrNull(decode(row))
  })
}
