import { PgClient } from "@effect/sql-pg"
import { Commit, ModelReference, RepoName } from "@seatrial/domain"
import { Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { Administrator } from "./audit.ts"
import { MillisFromDate } from "./columns.ts"

/** A commit, and the version of the texts of its reference. */
export const ReferenceKey = Schema.Struct({ repo: RepoName, commit: Commit, textsVersion: Schema.Int })
export type ReferenceKey = typeof ReferenceKey.Type

/** Whether the command or the operator computed a reference here, or an administrator imported it. */
const ReferenceOrigin = Schema.Literals(["computed", "imported", "operator"])

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

/** How a reference is computed. Another attempt with the same `madeFrom` has the same result. */
export const ReferenceAttempt = Schema.Struct({ ...ReferenceKey.fields, madeFrom: Schema.String })
export type ReferenceAttempt = typeof ReferenceAttempt.Type

/** Whether a commit has a reference. `missing`: the code of the cause if such an attempt found none. */
const ReferenceState = Schema.Struct({ isKnown: Schema.Boolean, missing: Schema.NullOr(Schema.String) })
export type ReferenceState = typeof ReferenceState.Type

const ListedMissing = Schema.Struct({ ...ReferenceKey.fields, code: Schema.String, foundAt: MillisFromDate })
export type ListedMissing = typeof ListedMissing.Type

const ForgottenCode = Schema.Struct({ code: Schema.String })

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

/** Whether the commit has a reference, and if not, why such an attempt found none. */
export const findReferenceState = (sql: PgClient.PgClient) => {
  const find = SqlSchema.findOne({
    Request: ReferenceAttempt,
    Result: ReferenceState,
    execute: ({ commit, madeFrom, repo, textsVersion }) => sql`
      SELECT
        EXISTS (SELECT FROM model_references WHERE hf_repo = ${repo} AND hf_revision = ${commit} AND texts_version = ${textsVersion}) AS "isKnown",
        (SELECT code FROM missing_references
          WHERE hf_repo = ${repo} AND hf_revision = ${commit} AND texts_version = ${textsVersion} AND made_from = ${madeFrom}) AS missing`
  })
  return (attempt: ReferenceAttempt) => Effect.orDie(find(attempt))
}

/** Remembers why an attempt found no reference. Returns false if a cause was known. */
export const noteMissingReference = (sql: PgClient.PgClient) => {
  const insert = SqlSchema.findOne({
    Request: Schema.Struct({ ...ReferenceAttempt.fields, code: Schema.String }),
    Result: Schema.Struct({ isNew: Schema.Boolean }),
    execute: ({ code, commit, madeFrom, repo, textsVersion }) => sql`
      INSERT INTO missing_references (hf_repo, hf_revision, texts_version, made_from, code) VALUES (${repo}, ${commit}, ${textsVersion}, ${madeFrom}, ${code})
      ON CONFLICT (hf_repo, hf_revision, texts_version, made_from) DO UPDATE SET code = excluded.code, found_at = now()
      RETURNING xmax = 0 AS "isNew"`
  })
  return (attempt: ReferenceAttempt, code: string) => Effect.orDie(Effect.map(insert({ ...attempt, code }), ({ isNew }) => isNew))
}

/** Adds a reference. Returns false if the commit has the same one. */
export const addReference = (sql: PgClient.PgClient) => {
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
  return Effect.fnUntraced(function* ({ reference, source, ...key }: NewReference) {
    const addedBy = yield* Administrator
    const { isAdded, isSame } = yield* Effect.orDie(insert({ ...key, source, addedBy, reference: JSON.stringify(reference) }))
    return isAdded || isSame ? isAdded : yield* new DifferentReference(key)
  })
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
    /** The commits for which the operator found no reference, by repository and commit. */
    readonly listMissing: Effect.Effect<ReadonlyArray<ListedMissing>>
    /** Adds a reference. Returns false if the commit has the same one. */
    readonly add: (reference: NewReference) => Effect.Effect<boolean, DifferentReference>
    /**
     * Forgets why the commit has no reference, so that its next trial computes it again. Returns the codes, sorted.
     * References stay.
     */
    readonly forgetMissing: (key: Pick<ReferenceKey, "commit" | "repo">) => Effect.Effect<ReadonlyArray<string>>
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
      const listMissing = SqlSchema.findAll({
        Request: Schema.Void,
        Result: ListedMissing,
        execute: () => sql`
          SELECT hf_repo AS repo, hf_revision AS commit, texts_version AS "textsVersion", code, found_at AS "foundAt" FROM missing_references m
          WHERE NOT EXISTS (SELECT FROM model_references r
            WHERE r.hf_repo = m.hf_repo AND r.hf_revision = m.hf_revision AND r.texts_version = m.texts_version)
          ORDER BY hf_repo, hf_revision, texts_version, found_at`
      })
      const forget = SqlSchema.findAll({
        Request: Schema.Struct({ repo: RepoName, commit: Commit }),
        Result: ForgottenCode,
        execute: ({ commit, repo }) => sql`DELETE FROM missing_references WHERE hf_repo = ${repo} AND hf_revision = ${commit} RETURNING code`
      })
      return ModelReferences.of({
        find: Effect.fn("ModelReferences.find")(findReference(sql)),
        list: Effect.orDie(list()).pipe(Effect.withSpan("ModelReferences.list")),
        listMissing: Effect.orDie(listMissing()).pipe(Effect.withSpan("ModelReferences.listMissing")),
        add: Effect.fn("ModelReferences.add")(addReference(sql)),
        forgetMissing: Effect.fn("ModelReferences.forgetMissing")((key) =>
          Effect.orDie(Effect.map(forget(key), (rows) => [...new Set(rows.map(({ code }) => code))].sort()))
        )
      })
    })
  )
}
