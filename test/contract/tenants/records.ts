import { PgClient } from "@effect/sql-pg"
import { AuditEventId, Ids, RequestId, SuspicionId } from "@seatrial/domain"
import { ApiKeys, Deployments, Runs } from "@seatrial/store"
import { makeServing, newModel } from "@seatrial/store/testing"
import { Clock, Effect, Option, Redacted, Schema } from "effect"
import { makeTenant } from "../Stage.ts"
import type { Kind } from "./operations.ts"

const IdRows = Schema.NonEmptyArray(Schema.Struct({ id: Schema.String }))

/**
 * Creates an organization with a record of each kind: a serving model, a failed run, a request with its receipt, and audit events. Every text
 * that an operation could return contains `word`.
 */
export const makeRecords = Effect.fnUntraced(function* (word: string) {
  const sql = yield* PgClient.PgClient
  const ids = yield* Ids
  const tenant = yield* makeTenant(true, word)
  const { orgId, slug, userId } = tenant
  const key = yield* tenant.withKey()
  const caller = Option.getOrThrow(yield* (yield* ApiKeys).authenticate(Redacted.make(key.secret)))
  const serving = yield* makeServing(caller, `${word}-serving`, `${word}-model`).pipe(Effect.orDie)
  const failed = yield* (yield* Deployments).create(newModel(caller, `${word}-failed`, `${word}-broken`)).pipe(Effect.orDie)
  yield* (yield* Runs).enter({ id: failed.id, orgId, from: "screening", to: "failed", reason: word, failure: { code: "internal", text: word } })

  const now = yield* Clock.currentTimeMillis
  const at = new Date(now)
  const requestId = yield* ids.make(RequestId, now)
  const auditId = yield* ids.make(AuditEventId, now)
  const suspicionIds = [yield* ids.make(SuspicionId, now), yield* ids.make(SuspicionId, now)] as const
  const engine = crypto.randomUUID()
  yield* Effect.gen(function* () {
    yield* sql`UPDATE organizations SET name = ${word} WHERE id = ${orgId}`
    yield* sql`UPDATE users SET name = ${word} WHERE id = ${userId}`
    yield* sql`UPDATE api_keys SET name = ${word} WHERE org_id = ${orgId}`
    yield* sql`UPDATE models SET display_name = ${word}, hf_repo = ${`${word}/${word}`}, ref = ${word}, hf_revision = ${word} WHERE org_id = ${orgId}`
    yield* sql`UPDATE revisions SET hf_repo = ${`${word}/${word}`}, hf_revision = ${word}, engine_version = ${word}, gpu_pool = ${word} WHERE org_id = ${orgId}`
    yield* sql`
      INSERT INTO requests (org_id, created_at, id, state, model_id, model, revision_id, api_key_id, endpoint, status_code, input_tokens, output_tokens,
        cost_micros, ttft_ms, latency_ms, finish_reason, streamed, engine)
      VALUES (${orgId}, ${at}, ${requestId}, 'completed', ${serving.modelId}, ${`${slug}/${word}`}, ${serving.revisionId}, ${key.id}, ${`/${word}`}, 200, 1, 2,
        3, 4, 5, ${word}, true, ${engine}::uuid)`
    yield* sql`
      INSERT INTO receipts (org_id, created_at, request_id, revision_id, model, endpoint, streamed, hf_revision, engine_version, status_code, finish_reason,
        input_tokens, output_tokens, input_micros_per_mtok, output_micros_per_mtok, cache_read_micros_per_mtok, cache_write_micros_per_mtok, cost_micros,
        latency_ms, note)
      VALUES (${orgId}, ${at}, ${requestId}, ${serving.revisionId}, ${word}, ${`/${word}`}, true, ${word}, ${word}, 200, ${word}, 1, 2, 0, 0, 0, 0, 3, 5, ${word})`
    yield* sql`
      INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
      VALUES (${orgId}, ${at}, ${auditId}, 'admin', ${userId}, 'org', ${orgId}, 'updated', ${sql.json({ word })}, ${sql.json({ word })})`
    yield* sql`
      INSERT INTO suspicions (org_id, created_at, id, deployment_id, model_id, revision_id, pod, pod_uid, restarts, since, probes, evidence)
      SELECT ${orgId}, ${at}, id, ${serving.operation.id}, ${serving.modelId}, ${serving.revisionId}, ${word}, ${engine}, restarts - 1, ${at}, 21, 1e13
      FROM unnest(ARRAY[${suspicionIds[0]}, ${suspicionIds[1]}]) WITH ORDINALITY AS s (id, restarts)`
    yield* sql`
      INSERT INTO applied_resources (org_id, namespace, name, uid, generation, spec_hash, model_id, names_model, deployment_id, created_at, updated_at)
      VALUES (${orgId}, ${word}, ${word}, ${word}, 1, ${word}, ${serving.modelId}, true, ${serving.operation.id}, ${at}, ${at})`
  }).pipe(Effect.orDie)

  const all = yield* sql`
    SELECT id FROM deployments WHERE org_id = ${orgId} UNION SELECT id FROM models WHERE org_id = ${orgId} UNION SELECT id FROM revisions WHERE org_id = ${orgId}
    UNION SELECT id FROM audit_events WHERE org_id = ${orgId} UNION SELECT id FROM api_keys WHERE org_id = ${orgId}
    UNION SELECT id FROM suspicions WHERE org_id = ${orgId}`.pipe(Effect.flatMap(Schema.decodeUnknownEffect(IdRows)), Effect.orDie)
  const records: Readonly<Record<Kind, string>> = {
    request: requestId,
    receipt: requestId,
    model: serving.modelId,
    deployment: serving.operation.id,
    audit: auditId,
    suspicion: suspicionIds[0]
  }
  return {
    ...tenant,
    key,
    records,
    modelId: serving.modelId,
    /** Texts and IDs that belong only to this organization. */
    marks: [word, orgId, userId, requestId, ...all.map(({ id }) => id)]
  }
})
export type Records = Effect.Success<ReturnType<typeof makeRecords>>
