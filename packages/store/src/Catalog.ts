import { PgClient } from "@effect/sql-pg"
import { ModelStatus, type OrgId, Prices, RevisionId, Runtime } from "@seatrial/domain"
import { Context, Effect, Layer, Option, Schedule, Schema, Stream } from "effect"
import type { Statement } from "effect/sql"
import { callableName, MillisFromDate } from "./columns.ts"
import { AcrossPool } from "./Database.ts"
import { listen } from "./listen.ts"
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
  /** As they were stored: in the form of the version that made the revision, or null where that kept none. */
  capabilities: Schema.Unknown,
  /** Unix milliseconds. */
  verifiedAt: Schema.NullOr(MillisFromDate)
})

/** A model with the revision that serves it now. */
export type ServedModel = typeof ServedModelRow.Type

const readable = readableRows(ServedModelRow, "A model of the catalog")

/** Models of a catalog at most: those above it, the oldest, are left out. */
const mostModels = 5_000

/** The models that are served now: active ones of active organisations, with their active revisions, newest first. */
export class Catalog extends Context.Service<
  Catalog,
  {
    /**
     * The published models of all organisations: as they are when it is first run, anew whenever routes change, and every 30 s at least. Never ends and never fails:
     * while the database is away nothing comes.
     */
    readonly published: Stream.Stream<ReadonlyArray<ServedModel>>
    /** The organisation's own, private and public. */
    readonly ownedBy: (orgId: OrgId) => Effect.Effect<ReadonlyArray<ServedModel>>
    /** The model that the organisation may call by this name: its own, or a published one. */
    readonly find: (orgId: OrgId, model: string) => Effect.Effect<Option.Option<ServedModel>>
  }
>()("seatrial/Catalog") {
  static readonly layerSql = Layer.effect(
    Catalog,
    Effect.map(PgClient.PgClient, (sql) => make(sql, sql))
  )

  /** The same for the server: row-level security shows an organization its own models only, and published ones are read in another pool. */
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
  ORDER BY m.created_at DESC, m.id DESC LIMIT ${mostModels}`

const find = Effect.fnUntraced(function* (sql: PgClient.PgClient, condition: Statement.Fragment) {
  return yield* readable(yield* served(sql, condition))
})

/** `own` reads the models of an organization, `across` the published ones of all. */
const make = (own: PgClient.PgClient, across: PgClient.PgClient): Catalog["Service"] => {
  // Changes that come while the models are read become one more reading.
  const occasions = listen(across, "routes").pipe(
    Stream.filter(({ _tag }) => _tag !== "Lost"),
    Stream.merge(Stream.fromSchedule(Schedule.spaced("30 seconds"))),
    Stream.buffer({ capacity: 1, strategy: "sliding" })
  )
  const read = find(across, across`m.visibility = 'public'`).pipe(
    Effect.tapError((error) => Effect.logWarning(`The catalog could not be read; the last one stays in use (${error.message})`)),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.orDie,
    Effect.withSpan("Catalog.published")
  )

  return Catalog.of({
    published: Stream.mapEffect(occasions, () => read),
    ownedBy: Effect.fn("Catalog.ownedBy")((orgId) => Effect.orDie(find(own, own`m.org_id = ${orgId}`))),
    find: Effect.fn("Catalog.find")(function* (orgId, model) {
      const [found] = yield* Effect.orDie(find(own, callableBy(own, orgId, model)))
      if (found !== undefined || across === own) return Option.fromUndefinedOr(found)
      const [published] = yield* Effect.orDie(find(across, across`${callableBy(across, orgId, model)} AND m.visibility = 'public'`))
      return Option.fromUndefinedOr(published)
    })
  })
}
