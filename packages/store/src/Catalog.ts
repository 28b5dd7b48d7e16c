import { PgClient } from "@effect/sql-pg"
import { ModelId, type ModelLoad, type ModelScalingState, ModelStatus, type OrgId, Prices, RevisionId, Runtime } from "@seatrial/domain"
import { Context, Effect, Layer, Option, Schedule, Schema, Stream } from "effect"
import { SqlSchema, type Statement } from "effect/sql"
import { callableName, MillisFromDate } from "./columns.ts"
import { AcrossPool } from "./Database.ts"
import { listen } from "./listen.ts"
import type { ModelNotFound } from "./models/administeredModel.ts"
import { readLoad } from "./models/readLoad.ts"
import { readScalingState } from "./models/scalingState.ts"
import { makeOutageLog } from "./outageLog.ts"
import { readableRows } from "./readableRows.ts"
import { callableBy } from "./routes/callableBy.ts"

const ServedModelRow = Schema.Struct({
  /** Callable name. */
  model: Schema.String,
  orgSlug: Schema.String,
  displayName: Schema.String,
  status: ModelStatus,
  /** Unix milliseconds. */
  createdAt: MillisFromDate,
  revisionId: RevisionId,
  hfRepo: Schema.String,
  hfRevision: Schema.String,
  dtype: Schema.String,
  quantization: Schema.String,
  /** Tokens. */
  maxModelLen: Schema.Int,
  runtime: Runtime,
  engineVersion: Schema.String,
  prices: Prices,
  /** As stored: in the format of the version that created the revision, or null if that version stored none. */
  capabilities: Schema.Unknown,
  /** Unix milliseconds. */
  verifiedAt: Schema.NullOr(MillisFromDate)
})

/** A model with its serving revision. */
export type ServedModel = typeof ServedModelRow.Type

const readable = readableRows(ServedModelRow, "A model of the catalog")

/** Maximum number of models in a catalog; the oldest ones beyond it are omitted. */
const maxModels = 5_000

/** Models that are served now: active models of active organizations with their active revisions, newest first. */
export class Catalog extends Context.Service<
  Catalog,
  {
    /**
     * The published models of all organizations: emitted at the start, after each change of the routes, and at least
     * every 30 s. Never ends and never fails; emits nothing while the database is not available.
     */
    readonly published: Stream.Stream<ReadonlyArray<ServedModel>>
    /** The models of the organization, private and public. */
    readonly ownedBy: (orgId: OrgId) => Effect.Effect<ReadonlyArray<ServedModel>>
    /** The model that the organization may call by this name: its own, or a published one. */
    readonly find: (orgId: OrgId, model: string) => Effect.Effect<Option.Option<ServedModel>>
    /** How many engines serve the organization's own model, by ID or name. */
    readonly scaling: (orgId: OrgId, idOrName: string) => Effect.Effect<Option.Option<ModelScalingState>>
    /** The load of the organization's own model, by ID or name. */
    readonly load: (orgId: OrgId, idOrName: string) => Effect.Effect<Option.Option<ModelLoad>>
  }
>()("seatrial/Catalog") {
  static readonly layerSql = Layer.effect(
    Catalog,
    Effect.map(PgClient.PgClient, (sql) => make(sql, sql))
  )

  /**
   * The same for the server: row-level security limits the main pool to the organization's own models, so published
   * models are read through another pool.
   */
  static readonly layerServer = Layer.effect(
    Catalog,
    Effect.gen(function* () {
      return make(yield* PgClient.PgClient, yield* AcrossPool)
    })
  )
}

const served = (sql: PgClient.PgClient, condition: Statement.Fragment) => sql`
  SELECT ${sql.literal(callableName)} AS model, o.slug AS "orgSlug", m.display_name AS "displayName", m.status, m.created_at AS "createdAt",
    r.id AS "revisionId", r.hf_repo AS "hfRepo", r.hf_revision AS "hfRevision", r.dtype, r.quantization, r.max_model_len AS "maxModelLen", r.runtime,
    r.engine_version AS "engineVersion",
    json_build_object(
      'input_micros_per_mtok', r.input_micros_per_mtok::text,
      'output_micros_per_mtok', r.output_micros_per_mtok::text,
      'cache_read_micros_per_mtok', r.cache_read_micros_per_mtok::text,
      'cache_write_micros_per_mtok', r.cache_write_micros_per_mtok::text) AS prices,
    r.capabilities, r.verified_at AS "verifiedAt"
  FROM models m
  JOIN organizations o ON o.id = m.org_id
  JOIN revisions r ON r.org_id = m.org_id AND r.id = m.active_revision_id
  WHERE ${condition} AND m.active_revision_id IS NOT NULL AND m.status = 'active' AND m.deleted_at IS NULL AND o.status = 'active'
  ORDER BY m.created_at DESC, m.id DESC LIMIT ${maxModels}`

const find = Effect.fnUntraced(function* (sql: PgClient.PgClient, condition: Statement.Fragment) {
  return yield* readable(yield* served(sql, condition))
})

/** `own` reads the models of an organization, `across` the published models of all organizations. */
const make = (own: PgClient.PgClient, across: PgClient.PgClient): Catalog["Service"] => {
  // Changes during a read cause one more read.
  const occasions = listen(across, "routes").pipe(
    Stream.filter(({ _tag }) => _tag !== "Lost"),
    Stream.merge(Stream.fromSchedule(Schedule.spaced("30 seconds"))),
    Stream.buffer({ capacity: 1, strategy: "sliding" })
  )
  const read = find(across, across`m.visibility = 'public'`).pipe(
    Effect.tapCause(makeOutageLog("Could not read the catalog; using the previous one")),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.orDie,
    Effect.withSpan("Catalog.published")
  )

  const findId = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, idOrName: Schema.String }),
    Result: Schema.Struct({ id: ModelId }),
    execute: ({ idOrName, orgId }) => own`
      SELECT m.id FROM models m JOIN organizations o ON o.id = m.org_id
      WHERE m.org_id = ${orgId} AND m.deleted_at IS NULL AND (m.id = ${idOrName} OR m.slug = ${idOrName} OR o.slug || '/' || m.slug = ${idOrName})
      ORDER BY m.id = ${idOrName} DESC LIMIT 1`
  })
  /** Reads something about the organization's own model; none if there is no such model. */
  const ofOwn = <A>(read: (orgId: OrgId, id: ModelId) => Effect.Effect<A, ModelNotFound>) =>
    Effect.fnUntraced(function* (orgId: OrgId, idOrName: string) {
      const row = yield* Effect.orDie(findId({ orgId, idOrName }))
      return Option.isNone(row) ? Option.none<A>() : yield* Effect.option(read(orgId, row.value.id))
    })
  const findScaling = ofOwn(readScalingState(own))
  const findLoad = ofOwn(readLoad(own))

  return Catalog.of({
    scaling: Effect.fn("Catalog.scaling")(findScaling),
    load: Effect.fn("Catalog.load")(findLoad),
    published: Stream.mapEffect(occasions, () => read),
    ownedBy: Effect.fn("Catalog.ownedBy")((orgId) => Effect.orDie(find(own, own`m.org_id = ${orgId}`))),
    find: Effect.fn("Catalog.find")(function* (orgId, model) {
      const [row] = yield* Effect.orDie(find(own, callableBy(own, orgId, model)))
      if (row !== undefined || across === own) return Option.fromUndefinedOr(row)
      const [published] = yield* Effect.orDie(find(across, across`${callableBy(across, orgId, model)} AND m.visibility = 'public'`))
      return Option.fromUndefinedOr(published)
    })
  })
}
