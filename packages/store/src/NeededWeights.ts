import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlSchema } from "effect/sql"

const Needed = Schema.Struct({ repo: Schema.String, commit: Schema.String })

/** How long a finished run that was not released may still have objects in the cluster. */
const unreleased = "interval '1 day'"

const Now = Schema.Struct({ millis: Schema.Finite })

/** The downloaded weights that are still needed, of all organizations. Cleanup keeps them. */
export class NeededWeights extends Context.Service<
  NeededWeights,
  {
    /**
     * The commits of serving revisions, of verified revisions that can serve again without a download, of unfinished
     * runs, of finished runs whose engine may still exist, and of published endpoints. For an adapter, also the commit
     * of its base. A later run that finds no record of its weights runs a download, which verifies or restores them.
     */
    readonly list: Effect.Effect<ReadonlyArray<typeof Needed.Type>>
    /**
     * Makes every later run of that commit run a download. Call this before the last read of `list`: a run that still
     * relies on the files is then in the list, and a later run restores them.
     */
    readonly forget: (stored: typeof Needed.Type) => Effect.Effect<void>
    /** The database's time, Unix milliseconds. Cleanup uses it because its local clock may be wrong. */
    readonly now: Effect.Effect<number>
  }
>()("seatrial/NeededWeights") {
  static readonly layerSql = Layer.effect(
    NeededWeights,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const find = SqlSchema.findAll({
        Request: Schema.Void,
        Result: Needed,
        execute: () => sql`
          WITH needed AS (
            SELECT r.hf_repo, r.hf_revision, r.base_hf_repo, r.base_hf_revision
            FROM revisions r JOIN models m ON m.org_id = r.org_id AND m.id = r.model_id
            WHERE m.deleted_at IS NULL AND (r.status = 'active' OR (r.status = 'draft' AND r.verified_at IS NOT NULL))
            UNION
            SELECT r.hf_repo, r.hf_revision, r.base_hf_repo, r.base_hf_revision
            FROM deployments d JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
            WHERE d.ended_at IS NULL OR (d.released_at IS NULL AND d.ended_at > now() - ${sql.literal(unreleased)})
            UNION
            SELECT r.hf_repo, r.hf_revision, r.base_hf_repo, r.base_hf_revision
            FROM endpoints e JOIN revisions r ON r.org_id = e.org_id AND r.id = e.revision_id
          )
          SELECT hf_repo AS repo, hf_revision AS commit FROM needed
          UNION
          SELECT base_hf_repo, base_hf_revision FROM needed WHERE base_hf_repo IS NOT NULL
          ORDER BY repo, commit`
      })
      const readNow = SqlSchema.findOne({
        Request: Schema.Void,
        Result: Now,
        execute: () => sql`SELECT round(extract(epoch FROM now()) * 1000)::float8 AS millis`
      })
      return NeededWeights.of({
        forget: Effect.fn("NeededWeights.forget")(({ commit, repo }) =>
          Effect.orDie(
            Effect.asVoid(sql`
              DELETE FROM stored_weights w WHERE (w.repo = ${repo} AND w.commit = ${commit})
                OR (w.repo, w.commit) IN (SELECT r.hf_repo, r.hf_revision FROM revisions r WHERE r.base_hf_repo = ${repo} AND r.base_hf_revision = ${commit})`)
          )
        ),
        list: find().pipe(Effect.orDie, Effect.withSpan("NeededWeights.list")),
        now: readNow().pipe(
          Effect.map(({ millis }) => millis),
          Effect.orDie,
          Effect.withSpan("NeededWeights.now")
        )
      })
    })
  )
}
