import type { PgClient } from "@effect/sql-pg"
import { type OrgId, RepositoryFacts } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"

/** A repository by name, or the repository of a model. */
export type FactsOf = { readonly repo: string } | { readonly modelId: string }

/**
 * The facts about a commit that a revision of the organization stores, if this version can read them. Facts of deleted
 * models are valid too. Adapters are excluded: the commit of the base follows from a ref that may have moved.
 */
export const knownFacts = (sql: PgClient.PgClient) => {
  const decode = Schema.decodeUnknownOption(Schema.Struct({ facts: RepositoryFacts }))
  return Effect.fnUntraced(function* (orgId: OrgId, of: FactsOf, commit: string) {
    const repo =
      "repo" in of ? sql`${of.repo}` : sql`(SELECT m.hf_repo FROM models m WHERE m.org_id = ${orgId} AND m.id = ${of.modelId} AND m.deleted_at IS NULL)`
    const rows = yield* sql`
      SELECT facts FROM revisions WHERE org_id = ${orgId} AND hf_revision = ${commit} AND hf_repo = ${repo} AND base_hf_repo IS NULL
      ORDER BY created_at DESC, id DESC LIMIT 1`
    return Option.map(decode(rows[0]), ({ facts }) => facts)
  })
}
