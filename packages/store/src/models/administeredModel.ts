import { ModelId, Prices, RevisionId } from "@seatrial/domain"
import { Data, Schema } from "effect"
import { callableName, IsoFromDate } from "../columns.ts"

const pricesJson = `CASE WHEN r.id IS NOT NULL THEN json_build_object(
  'input_micros_per_mtok', r.input_micros_per_mtok::text,
  'output_micros_per_mtok', r.output_micros_per_mtok::text,
  'cache_read_micros_per_mtok', r.cache_read_micros_per_mtok::text,
  'cache_write_micros_per_mtok', r.cache_write_micros_per_mtok::text) END`

export const AdministeredModelRow = Schema.Struct({
  id: ModelId,
  slug: Schema.String,
  /** Callable name. */
  model: Schema.String,
  status: Schema.Literals(["pending", "active", "disabled"]),
  visibility: Schema.Literals(["public", "private"]),
  hf_repo: Schema.String,
  hf_revision: Schema.NullOr(Schema.String),
  /** The serving revision, or for a disabled model the revision that would serve. */
  revision_id: Schema.NullOr(RevisionId),
  /** Rates of that revision. */
  prices: Schema.NullOr(Prices),
  created_at: IsoFromDate,
  updated_at: IsoFromDate
})
/** A model as administrators see it. */
export type AdministeredModel = typeof AdministeredModelRow.Type

/** The organization has no such model. */
export class ModelNotFound extends Data.TaggedError("ModelNotFound") {}
/** No revision was ever activated, so the model cannot be disabled, enabled or published. */
export class ModelServesNothing extends Data.TaggedError("ModelServesNothing") {}
/** Another published model already has that bare name. */
export class PublicNameTaken extends Data.TaggedError("PublicNameTaken")<{ readonly slug: string }> {}

export const administeredColumns = `
  m.id, m.slug, ${callableName} AS model, m.status, m.visibility, m.hf_repo, m.hf_revision, m.active_revision_id AS revision_id, ${pricesJson} AS prices,
  m.created_at, m.updated_at`
export const administeredJoin = `
  models m JOIN organizations o ON o.id = m.org_id LEFT JOIN revisions r ON r.org_id = m.org_id AND r.id = m.active_revision_id`
