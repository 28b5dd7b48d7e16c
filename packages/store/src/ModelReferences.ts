import { PgClient } from "@effect/sql-pg"
import { Commit, ModelReference, RepoName } from "@seatrial/domain"
import { Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { Administrator } from "./audit.ts"
import { MillisFromDate } from "./columns.ts"

/** A commit, and the version of the texts of its reference. */
export const ReferenceKey = Schema.Struct({ repo: RepoName, commit: Commit, textsVersion: Schema.Int })
export type ReferenceKey = typeof ReferenceKey.Type

/** Whether the command computed a reference here, or an administrator imported it. */
const ReferenceOrigin = Schema.Literals(["computed", "imported"])

const ListedReference = Schema.Struct({
  ...ReferenceKey.fields,
  source: ReferenceOrigin,
  /** The administrator who added it; null if that is not known. */
  addedBy: Schema.NullOr(Schema.String),
  /** Unix milliseconds. */
  createdAt: MillisFromDate,
  transformers: Schema.String,
  torch: Schema.String
})
export type ListedReference = typeof ListedReference.Type

/** The commit has another reference already. A reference never changes. */
export class DifferentReference extends Data.TaggedError("DifferentReference")<ReferenceKey> {}

export interface NewReference extends ReferenceKey {
  readonly source: typeof ReferenceOrigin.Type
  readonly reference: ModelReference
}

const Row = Schema.Struct({ reference: ModelReference })
const AddedRow = Schema.Struct({ isAdded: Schema.Boolean, isSame: Schema.Boolean })

/** Finds the reference of a commit. */
export const findReference = (sql: PgClient.PgClient) => {
  const find = SqlSchema.findOneOption({
    Request: ReferenceKey,
    Result: Row,
    execute: ({ commit, repo, textsVersion }) => sql`
      SELECT reference FROM model_references WHERE hf_repo = ${repo} AND hf_revision = ${commit} AND texts_version = ${textsVersion}`
  })
  return (key: ReferenceKey) =>
    Effect.orDie(
      Effect.map(
        find(key),
        Option.map(({ reference }) => reference)
      )
    )
}

/**
 * What an independent implementation computes for commits. A reference belongs to no organization: a trial reads it by
 * the commit that it has verified, so it knows the same files.
 */
export class ModelReferences extends Context.Service<
  ModelReferences,
  {
    readonly find: (key: ReferenceKey) => Effect.Effect<Option.Option<ModelReference>>
    /** All references without their values, by repository and commit. */
    readonly list: Effect.Effect<ReadonlyArray<ListedReference>>
    /** Adds a reference. Returns false if the commit has the same one. */
    readonly add: (reference: NewReference) => Effect.Effect<boolean, DifferentReference>
  }
>()("seatrial/ModelReferences") {
  static readonly layerSql = Layer.effect(
    ModelReferences,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const list = SqlSchema.findAll({
        Request: Schema.Void,
        Result: ListedReference,
        execute: () => sql`
          SELECT hf_repo AS repo, hf_revision AS commit, texts_version AS "textsVersion", source, added_by AS "addedBy", created_at AS "createdAt",
            reference ->> 'transformers' AS transformers, reference ->> 'torch' AS torch
          FROM model_references ORDER BY hf_repo, hf_revision, texts_version`
      })
      const insert = SqlSchema.findOne({
        Request: Schema.Struct({ ...ReferenceKey.fields, source: ReferenceOrigin, addedBy: Schema.NullOr(Schema.String), reference: Schema.String }),
        Result: AddedRow,
        // The versions of the packages are no part of the result.
        execute: ({ addedBy, commit, reference, repo, source, textsVersion }) => sql`
          WITH added AS (
            INSERT INTO model_references (hf_repo, hf_revision, texts_version, source, added_by, reference)
            VALUES (${repo}, ${commit}, ${textsVersion}, ${source}, ${addedBy}, ${reference}::jsonb) ON CONFLICT DO NOTHING RETURNING 1
          )
          SELECT EXISTS (SELECT FROM added) AS "isAdded", EXISTS (
            SELECT FROM model_references WHERE hf_repo = ${repo} AND hf_revision = ${commit} AND texts_version = ${textsVersion}
              AND reference - 'transformers' - 'torch' = ${reference}::jsonb - 'transformers' - 'torch'
          ) AS "isSame"`
      })
      return ModelReferences.of({
        find: Effect.fn("ModelReferences.find")(findReference(sql)),
        list: Effect.orDie(list()).pipe(Effect.withSpan("ModelReferences.list")),
        add: Effect.fn("ModelReferences.add")(function* ({ reference, source, ...key }) {
          const addedBy = yield* Administrator
          const { isAdded, isSame } = yield* Effect.orDie(insert({ ...key, source, addedBy, reference: JSON.stringify(reference) }))
          return isAdded || isSame ? isAdded : yield* new DifferentReference(key)
        })
      })
    })
  )
}
