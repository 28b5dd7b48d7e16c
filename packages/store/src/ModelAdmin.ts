import { PgClient } from "@effect/sql-pg"
import { Ids, ModelId, type OrgId, Prices, RevisionId } from "@seatrial/domain"
import { Clock, Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema, type Statement } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { callableName, IsoFromDate } from "./columns.ts"
import { deleteModel } from "./models/deleteModel.ts"
import { type TrialFigures, trialFigures } from "./models/trialFigures.ts"

const pricesJson = `CASE WHEN r.id IS NOT NULL THEN json_build_object(
  'input_micros_per_mtok', r.input_micros_per_mtok::text,
  'output_micros_per_mtok', r.output_micros_per_mtok::text,
  'cache_read_micros_per_mtok', r.cache_read_micros_per_mtok::text,
  'cache_write_micros_per_mtok', r.cache_write_micros_per_mtok::text) END`

const AdministeredModelRow = Schema.Struct({
  id: ModelId,
  slug: Schema.String,
  /** Callable name. */
  model: Schema.String,
  status: Schema.Literals(["pending", "active", "disabled"]),
  visibility: Schema.Literals(["public", "private"]),
  hf_repo: Schema.String,
  hf_revision: Schema.NullOr(Schema.String),
  /** What serves, or would where the model is disabled. */
  revision_id: Schema.NullOr(RevisionId),
  /** Rates of that revision. */
  prices: Schema.NullOr(Prices),
  created_at: IsoFromDate,
  updated_at: IsoFromDate
})
/** A model as who administers it sees it. */
export type AdministeredModel = typeof AdministeredModelRow.Type

/** The organisation has no such model. */
export class ModelNotFound extends Data.TaggedError("ModelNotFound") {}
/** No revision has gone live, so there is nothing to disable, enable or publish. */
export class ModelServesNothing extends Data.TaggedError("ModelServesNothing") {}
/** Another model is published under that bare name. */
export class PublicNameTaken extends Data.TaggedError("PublicNameTaken")<{ readonly slug: string }> {}

/**
 * What is done to models beyond their deployments. Each change writes its audit event in the same transaction, as actor `admin`; one that changes nothing writes
 * none. The operator and the gateways hear of it and bring the cluster and the routes to what is written here.
 */
export class ModelAdmin extends Context.Service<
  ModelAdmin,
  {
    /** All that are not deleted, by slug. */
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<AdministeredModel>>
    /** By id or slug. */
    readonly find: (orgId: OrgId, idOrSlug: string) => Effect.Effect<Option.Option<AdministeredModel>>
    /** What the trial of what serves measured, or of the newest revision that was measured. */
    readonly figures: (orgId: OrgId, id: ModelId) => Effect.Effect<Option.Option<TrialFigures>>
    /** Takes no requests from now on, and its GPUs are given back; its weights and its settings stay. */
    readonly disable: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound | ModelServesNothing>
    /** What served before serves again, once its engine is ready. */
    readonly enable: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound | ModelServesNothing>
    /** Gives its name back, ends an unfinished run and retires what serves. Requests and receipts stay readable. */
    readonly remove: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound>
    /** Into the catalog, callable by everybody under its bare slug at these rates. Also changes the rates of a published model. */
    readonly publish: (orgId: OrgId, id: ModelId, prices: Prices) => Effect.Effect<AdministeredModel, ModelNotFound | ModelServesNothing | PublicNameTaken>
    /** Out of the catalog: its own organisation's again, under `<org slug>/<model slug>` and without rates. */
    readonly unpublish: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound>
  }
>()("seatrial/ModelAdmin") {
  static readonly layerSql = Layer.effect(
    ModelAdmin,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const remove = deleteModel(sql, ids)

      const columns = sql.literal(`
        m.id, m.slug, ${callableName} AS model, m.status, m.visibility, m.hf_repo, m.hf_revision, m.active_revision_id AS revision_id, ${pricesJson} AS prices,
        m.created_at, m.updated_at`)
      const joined = sql.literal(`
        models m JOIN organizations o ON o.id = m.org_id LEFT JOIN revisions r ON r.org_id = m.org_id AND r.id = m.active_revision_id`)
      const list = SqlSchema.findAll({
        Request: Schema.String,
        Result: AdministeredModelRow,
        execute: (orgId) => sql`SELECT ${columns} FROM ${joined} WHERE m.org_id = ${orgId} AND m.deleted_at IS NULL ORDER BY m.slug`
      })
      const find = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, idOrSlug: Schema.String }),
        Result: AdministeredModelRow,
        // The id goes before: a slug may look like one.
        execute: ({ idOrSlug, orgId }) => sql`
          SELECT ${columns} FROM ${joined} WHERE m.org_id = ${orgId} AND m.deleted_at IS NULL AND (m.id = ${idOrSlug} OR m.slug = ${idOrSlug})
          ORDER BY m.id = ${idOrSlug} DESC LIMIT 1`
      })
      const lock = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
        Result: AdministeredModelRow,
        execute: ({ id, orgId }) => sql`
          SELECT ${columns} FROM ${joined} WHERE m.org_id = ${orgId} AND m.deleted_at IS NULL AND m.id = ${id} FOR UPDATE OF m`
      })
      const locked = Effect.fnUntraced(function* (orgId: OrgId, id: ModelId) {
        const found = yield* Effect.orDie(lock({ orgId, id }))
        if (Option.isNone(found)) return yield* new ModelNotFound()
        return found.value
      })

      /** Tells the gateways, and the operator of every run of what serves. */
      const tell = (orgId: OrgId, model: AdministeredModel, at: Date) => sql`
        WITH work AS (
          INSERT INTO outbox (org_id, deployment_id, created_at)
          SELECT org_id, id, ${at} FROM deployments WHERE org_id = ${orgId} AND revision_id = ${model.revision_id}
          RETURNING deployment_id
        )
        SELECT pg_notify('routes', ${model.id}), (SELECT count(pg_notify('deployments', deployment_id)) FROM work)`

      /** One change of a model that serves or has served: its statements, its audit event and the notices, in one transaction. */
      const change = Effect.fnUntraced(function* (input: {
        readonly orgId: OrgId
        readonly model: AdministeredModel
        readonly action: "updated" | "activated"
        readonly before: unknown
        readonly after: unknown
        readonly statements: (at: Date) => ReadonlyArray<Statement.Statement<unknown>>
      }) {
        const { model, orgId } = input
        const now = yield* Clock.currentTimeMillis
        const at = new Date(now)
        for (const statement of input.statements(at)) yield* statement
        yield* writeAudit(sql, ids, {
          orgId,
          actorKind: "admin",
          resourceType: "model_config",
          resourceId: model.id,
          action: input.action,
          before: input.before,
          after: input.after,
          at: now
        })
        yield* tell(orgId, model, at)
        return yield* Effect.orDie(locked(orgId, model.id))
      })

      const setStatus = Effect.fnUntraced(function* (orgId: OrgId, id: ModelId, status: "active" | "disabled") {
        const model = yield* locked(orgId, id)
        if (model.status === "pending" || model.revision_id === null) return yield* new ModelServesNothing()
        if (model.status === status) return model
        return yield* change({
          orgId,
          model,
          action: status === "active" ? "activated" : "updated",
          before: { status: model.status },
          after: { status, revision_id: model.revision_id },
          statements: (at) => [sql`UPDATE models SET status = ${status}, updated_at = ${at} WHERE org_id = ${orgId} AND id = ${id}`]
        })
      })

      const setPublic = Effect.fnUntraced(function* (orgId: OrgId, id: ModelId, prices: Prices | null) {
        const model = yield* locked(orgId, id)
        if (prices !== null && model.revision_id === null) return yield* new ModelServesNothing()
        const visibility = prices === null ? "private" : "public"
        // In micro-dollars, so that "007" and "7" are the same rate.
        const [input, output, cacheRead, cacheWrite] = ratesOf(prices)
        const same = model.prices === null || ratesOf(model.prices).join() === [input, output, cacheRead, cacheWrite].join()
        if (model.visibility === visibility && same) return model
        return yield* change({
          orgId,
          model,
          action: "updated",
          before: { visibility: model.visibility, prices: model.prices },
          after: { visibility, prices: pricesOf([input, output, cacheRead, cacheWrite]) },
          statements: (at) => [
            sql`UPDATE models SET visibility = ${visibility}, updated_at = ${at} WHERE org_id = ${orgId} AND id = ${id}`,
            sql`
              UPDATE revisions SET input_micros_per_mtok = ${input}, output_micros_per_mtok = ${output}, cache_read_micros_per_mtok = ${cacheRead},
                cache_write_micros_per_mtok = ${cacheWrite}, updated_at = ${at}
              WHERE org_id = ${orgId} AND id = ${model.revision_id}`
          ]
        })
      })

      /** Faults of SQL and decoding are nobody's to handle; what the caller can act on stays. */
      const atOnce = <A, E>(effect: Effect.Effect<A, E>) => sql.withTransaction(effect)

      return ModelAdmin.of({
        list: Effect.fn("ModelAdmin.list")((orgId) => Effect.orDie(list(orgId))),
        find: Effect.fn("ModelAdmin.find")((orgId, idOrSlug) => Effect.orDie(find({ orgId, idOrSlug }))),
        figures: trialFigures(sql),
        disable: Effect.fn("ModelAdmin.disable")((orgId, id) => atOnce(setStatus(orgId, id, "disabled")).pipe(Effect.catchTag("SqlError", Effect.die))),
        enable: Effect.fn("ModelAdmin.enable")((orgId, id) => atOnce(setStatus(orgId, id, "active")).pipe(Effect.catchTag("SqlError", Effect.die))),
        remove: Effect.fn("ModelAdmin.remove")((orgId, id) =>
          Effect.gen(function* () {
            const model = yield* locked(orgId, id)
            yield* remove(orgId, model)
            return model
          }).pipe(atOnce, Effect.catchTag("SqlError", Effect.die))
        ),
        publish: Effect.fn("ModelAdmin.publish")(function* (orgId, id, prices) {
          const found = yield* Effect.orDie(find({ orgId, idOrSlug: id }))
          return yield* atOnce(setPublic(orgId, id, prices)).pipe(
            Effect.catchReason(
              "SqlError",
              "UniqueViolation",
              () => new PublicNameTaken({ slug: Option.match(found, { onNone: () => id, onSome: ({ slug }) => slug }) }),
              Effect.die
            )
          )
        }),
        unpublish: Effect.fn("ModelAdmin.unpublish")((orgId, id) =>
          atOnce(setPublic(orgId, id, null)).pipe(Effect.catchTag(["SqlError", "ModelServesNothing"], Effect.die))
        )
      })
    })
  )
}

const ratesOf = (prices: Prices | null): readonly [input: bigint, output: bigint, cacheRead: bigint, cacheWrite: bigint] =>
  prices === null
    ? [0n, 0n, 0n, 0n]
    : [
        BigInt(prices.input_micros_per_mtok),
        BigInt(prices.output_micros_per_mtok),
        BigInt(prices.cache_read_micros_per_mtok),
        BigInt(prices.cache_write_micros_per_mtok)
      ]

const pricesOf = ([input, output, cacheRead, cacheWrite]: ReturnType<typeof ratesOf>): Prices => ({
  input_micros_per_mtok: input.toString(),
  output_micros_per_mtok: output.toString(),
  cache_read_micros_per_mtok: cacheRead.toString(),
  cache_write_micros_per_mtok: cacheWrite.toString()
})
