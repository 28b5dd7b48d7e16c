import type { PgClient } from "@effect/sql-pg"
import type { Ids, ModelId } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { MillisFromDate } from "../columns.ts"
import type { CreateInput, Deployments } from "../Deployments.ts"
import { ModelNameTaken, RecordNotFound } from "./errors.ts"
import { makeInsertOnce } from "./insertOnce.ts"
import type { makeReplayOf } from "./replayOf.ts"

/** Creates the run of a new model, or the next run of an existing one. */
const makeInsert = (sql: PgClient.PgClient, ids: Ids["Service"]) => {
  const insertOnce = makeInsertOnce(sql, ids)
  const findNewest = SqlSchema.findOne({
    Request: Schema.Struct({ orgId: Schema.String, modelId: Schema.String }),
    Result: Schema.Struct({ at: Schema.NullOr(MillisFromDate) }),
    execute: ({ modelId, orgId }) => sql`SELECT max(created_at) AS at FROM deployments WHERE org_id = ${orgId} AND model_id = ${modelId}`
  })
  /**
   * Runs of a model are ordered by `created_at`, but their creators may have different clocks. A run is therefore
   * created at least one millisecond after the newest run. The lock on the model prevents concurrent inserts.
   */
  const insertNext = Effect.fnUntraced(function* (input: CreateInput, modelId: ModelId) {
    yield* sql`SELECT 1 FROM models WHERE org_id = ${input.caller.orgId} AND id = ${modelId} FOR NO KEY UPDATE`
    const newest = yield* findNewest({ orgId: input.caller.orgId, modelId })
    const now = yield* Clock.currentTimeMillis
    return yield* insertOnce(input, newest.at === null ? now : Math.max(now, newest.at + 1))
  }, sql.withTransaction)

  return (input: CreateInput) =>
    input.target._tag === "Redeploy" ? insertNext(input, input.target.modelId) : Effect.flatMap(Clock.currentTimeMillis, (now) => insertOnce(input, now))
}

export const createDeployment = (sql: PgClient.PgClient, ids: Ids["Service"], replayOf: ReturnType<typeof makeReplayOf>): Deployments["Service"]["create"] => {
  const insert = makeInsert(sql, ids)
  return Effect.fn("Deployments.create")(function* (input) {
    const { target } = input
    const created = yield* insert(input).pipe(
      Effect.catchReason("SqlError", "UniqueViolation", () => new ModelNameTaken({ slug: target._tag === "NewModel" ? target.slug : "" }), Effect.die),
      Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
    )
    if (created !== undefined) return { ...created, replayed: false }
    const earlier = yield* replayOf(input.caller.orgId, input.idempotencyKey, input.inputHash)
    if (Option.isNone(earlier)) return yield* new RecordNotFound()
    return earlier.value
  })
}
