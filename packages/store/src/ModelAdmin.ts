import { PgClient } from "@effect/sql-pg"
import { Ids, type ModelId, type OrgId, type Prices } from "@seatrial/domain"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import {
  type AdministeredModel,
  AdministeredModelRow,
  administeredColumns,
  administeredJoin,
  type ModelNotFound,
  ModelServesNothing,
  PublicNameTaken
} from "./models/administeredModel.ts"
import { changeModel, findModel, makeSetStatus } from "./models/changeModel.ts"
import { deleteModel } from "./models/deleteModel.ts"
import { type TrialFigures, trialFigures } from "./models/trialFigures.ts"

/**
 * Administration of models, apart from their deployments. Each change writes its audit event in the same transaction,
 * as actor `admin`; a call that changes nothing writes none. The operator and the gateways are notified and apply the
 * stored state to the cluster and the routes.
 */
export class ModelAdmin extends Context.Service<
  ModelAdmin,
  {
    /** All models that are not deleted, by slug. */
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<AdministeredModel>>
    /** By ID or slug. */
    readonly find: (orgId: OrgId, idOrSlug: string) => Effect.Effect<Option.Option<AdministeredModel>>
    /** Figures measured by the trial of the serving revision, or of the newest measured revision if none serves. */
    readonly figures: (orgId: OrgId, id: ModelId) => Effect.Effect<Option.Option<TrialFigures>>
    /** Stops all requests to the model and releases its GPUs; its weights and settings stay. */
    readonly disable: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound | ModelServesNothing>
    /** The previous revision serves again when its engine is ready. */
    readonly enable: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound | ModelServesNothing>
    /**
     * Frees the name, cancels an unfinished run and retires the serving revision. Requests and receipts stay readable.
     */
    readonly remove: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound>
    /**
     * Adds the model to the catalog: every organization may call it by its bare slug at these rates. Also changes the
     * rates of a published model.
     */
    readonly publish: (orgId: OrgId, id: ModelId, prices: Prices) => Effect.Effect<AdministeredModel, ModelNotFound | ModelServesNothing | PublicNameTaken>
    /**
     * Removes the model from the catalog: it is callable only by its organization, as `<org slug>/<model slug>`,
     * without rates.
     */
    readonly unpublish: (orgId: OrgId, id: ModelId) => Effect.Effect<AdministeredModel, ModelNotFound>
  }
>()("seatrial/ModelAdmin") {
  static readonly layerSql = Layer.effect(
    ModelAdmin,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const remove = deleteModel(sql, ids)

      const changes = changeModel(sql, ids)
      const setStatus = makeSetStatus(sql, changes)
      const list = SqlSchema.findAll({
        Request: Schema.String,
        Result: AdministeredModelRow,
        execute: (orgId) =>
          sql`SELECT ${sql.literal(administeredColumns)} FROM ${sql.literal(administeredJoin)} WHERE m.org_id = ${orgId} AND m.deleted_at IS NULL ORDER BY m.slug`
      })
      const find = findModel(sql)

      const setPublic = makeSetPublic(sql, changes)

      /** SQL and decoding errors become defects; errors that the caller can handle stay typed. */
      const atOnce = <A, E>(effect: Effect.Effect<A, E>) => sql.withTransaction(effect)

      return ModelAdmin.of({
        list: Effect.fn("ModelAdmin.list")((orgId) => Effect.orDie(list(orgId))),
        find: Effect.fn("ModelAdmin.find")((orgId, idOrSlug) => Effect.orDie(find({ orgId, idOrSlug }))),
        figures: trialFigures(sql),
        disable: Effect.fn("ModelAdmin.disable")((orgId, id) => atOnce(setStatus(admin, orgId, id, "disabled")).pipe(Effect.catchTag("SqlError", Effect.die))),
        enable: Effect.fn("ModelAdmin.enable")((orgId, id) => atOnce(setStatus(admin, orgId, id, "active")).pipe(Effect.catchTag("SqlError", Effect.die))),
        remove: Effect.fn("ModelAdmin.remove")((orgId, id) =>
          Effect.gen(function* () {
            const model = yield* changes.locked(orgId, id)
            yield* remove(orgId, model, admin)
            return model
          }).pipe(atOnce, Effect.catchTag("SqlError", Effect.die))
        ),
        publish: Effect.fn("ModelAdmin.publish")(function* (orgId, id, prices) {
          const model = yield* Effect.orDie(find({ orgId, idOrSlug: id }))
          return yield* atOnce(setPublic(orgId, id, prices)).pipe(
            Effect.catchReason(
              "SqlError",
              "UniqueViolation",
              () => new PublicNameTaken({ slug: Option.match(model, { onNone: () => id, onSome: ({ slug }) => slug }) }),
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

const admin = { actorKind: "admin" } as const

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

/** Publishes the model at these rates; null removes it from the catalog. Call it inside a transaction. */
const makeSetPublic = (sql: PgClient.PgClient, { change, locked }: ReturnType<typeof changeModel>) =>
  Effect.fnUntraced(function* (orgId: OrgId, id: ModelId, prices: Prices | null) {
    const model = yield* locked(orgId, id)
    if (prices !== null && model.revision_id === null) return yield* new ModelServesNothing()
    const visibility = prices === null ? "private" : "public"
    // Compared in micro-dollars, so that "007" and "7" are the same rate.
    const [input, output, cacheRead, cacheWrite] = ratesOf(prices)
    const same = model.prices === null || ratesOf(model.prices).join() === [input, output, cacheRead, cacheWrite].join()
    if (model.visibility === visibility && same) return model
    return yield* change(admin, {
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
