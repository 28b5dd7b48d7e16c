import type { PgClient } from "@effect/sql-pg"
import { DeploymentId, ModelId, type OrgId, Phase, RevisionId } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { Operation } from "../Deployments.ts"
import { IdempotencyKeyReused, ModelDeleted } from "./errors.ts"

export const OperationRow = Schema.Struct({ id: DeploymentId, modelId: ModelId, revisionId: Schema.NullOr(RevisionId), phase: Phase })
const BoundRow = Schema.Struct({ ...OperationRow.fields, inputHash: Schema.String, deleted: Schema.Boolean })

/** Finds the operation that an earlier request with the idempotency key created. */
export const makeReplayOf = (sql: PgClient.PgClient) => {
  const findBound = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, key: Schema.String }),
    Result: BoundRow,
    execute: ({ key, orgId }) => sql`
      SELECT d.id, d.model_id AS "modelId", d.revision_id AS "revisionId", d.phase, k.input_hash AS "inputHash", m.deleted_at IS NOT NULL AS deleted
      FROM idempotency_keys k
      JOIN deployments d ON d.org_id = k.org_id AND d.id = k.deployment_id
      JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
      WHERE k.org_id = ${orgId} AND k.operation = 'deployments.create' AND k.key = ${key}`
  })
  return Effect.fnUntraced(function* (orgId: OrgId, key: string, hash: string) {
    const earlier = yield* Effect.orDie(findBound({ orgId, key }))
    if (Option.isNone(earlier)) return Option.none()
    const { deleted, inputHash, ...operation } = earlier.value
    if (inputHash !== hash) return yield* new IdempotencyKeyReused()
    if (deleted) return yield* new ModelDeleted()
    return Option.some<Operation>({ ...operation, replayed: true })
  })
}
