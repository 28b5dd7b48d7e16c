import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { leads } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"

/** Records that the store contains all files of the run's commit, as the download has just verified. */
export const noteWeights = (sql: PgClient.PgClient): Runs["Service"]["noteWeights"] =>
  Effect.fn("Runs.noteWeights")(function* (id, orgId, { manifest, store }) {
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* Effect.orDie(sql`
      INSERT INTO stored_weights (repo, commit, store, manifest_sha256, verified_by, verified_at)
      SELECT r.hf_repo, r.hf_revision, ${store}, ${manifest}, d.id, ${at}
      FROM deployments d JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
      WHERE ${yield* leads(sql)} AND d.org_id = ${orgId} AND d.id = ${id}
      ON CONFLICT (repo, commit, store) DO UPDATE
        SET manifest_sha256 = excluded.manifest_sha256, verified_by = excluded.verified_by, verified_at = excluded.verified_at`)
  })

/**
 * Deletes that record: the files of the run's commit in that store are not used until a download verifies them again.
 */
export const forgetWeights = (sql: PgClient.PgClient): Runs["Service"]["forgetWeights"] =>
  Effect.fn("Runs.forgetWeights")(function* (id, orgId, store) {
    yield* Effect.orDie(sql`
      DELETE FROM stored_weights w USING deployments d, revisions r
      WHERE ${yield* leads(sql)} AND d.org_id = ${orgId} AND d.id = ${id} AND r.org_id = d.org_id AND r.id = d.revision_id
        AND w.repo = r.hf_repo AND w.commit = r.hf_revision AND w.store = ${store}`)
  })
