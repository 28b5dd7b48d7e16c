import { assert } from "@effect/vitest"
import { replay } from "@seatrial/operator/record"
import { Effect, Schema } from "effect"
import { codeOf } from "../e2e/Caller.ts"
import { eventually } from "../e2e/eventually.ts"
import type { Lane } from "./Lane.ts"
import { recordedPasses } from "./recordedPasses.ts"

const Finished = Schema.Array(Schema.Struct({ id: Schema.String, record: Schema.String }))
const finished = `
  SELECT d.id, concat_ws(' ', d.phase, d.phase_since, d.phase_count, d.requeues, d.failure_code, d.failure_text, d.revision_id, d.ended_at,
    (SELECT string_agg(concat_ws(' ', p.seq, p.phase, p.at, p.reason), ', ' ORDER BY p.seq) FROM deployment_phases p WHERE p.deployment_id = d.id)) AS record
  FROM deployments d WHERE d.ended_at IS NOT NULL`

const Request = Schema.Array(Schema.Struct({ id: Schema.String, state: Schema.String, status: Schema.NullOr(Schema.Int), receipts: Schema.Int }))
const requests = `
  SELECT q.id, q.state, q.status_code AS status, (SELECT count(*) FROM receipts r WHERE r.org_id = q.org_id AND r.request_id = q.id)::int AS receipts
  FROM requests q`

/** Revisions that served without a trial, and receipts of untried revisions or with another revision's figures. */
const untried = `
  SELECT id FROM revisions WHERE status <> 'draft' AND (checks IS NULL OR measured IS NULL OR benchmark IS NULL OR verification IS NULL OR engine_image IS NULL)
  UNION ALL
  SELECT r.request_id FROM receipts r LEFT JOIN revisions v ON v.id = r.revision_id
  WHERE v.id IS NULL OR v.status = 'draft' OR v.hf_revision <> r.hf_revision OR v.engine_version <> r.engine_version`

const Page = Schema.Struct({ data: Schema.Array(Schema.Unknown) })

const records = new WeakMap<Lane, Map<string, string>>()

/**
 * The invariants of docs/explanation/architecture.md that records show after the faults: finished runs do not change (2),
 * another organization sees none of them (3), no prompt or secret was stored or logged (4), every request ended once (5),
 * and every serving revision was tried (6). `answers` are those of the client that tests invariant 1. Also, each recorded
 * decision of the operators is made again by its record.
 */
export const alwaysHolds = Effect.fnUntraced(function* (lane: Lane, runs: ReadonlyArray<string>, answers: ReadonlyArray<{ readonly id: string }>) {
  const { select, stranger } = lane
  const before = records.get(lane) ?? new Map<string, string>()
  const now = new Map((yield* select(Finished, finished)).map(({ id, record }) => [id, record]))
  for (const [id, record] of before) assert.strictEqual(now.get(id), record)
  records.set(lane, now)

  for (const id of runs) assert.strictEqual(codeOf(yield* stranger.call("GET", `/v1/org/deployments/${id}`)), "not_found")
  assert.deepStrictEqual((yield* stranger.read("/v1/org/deployments", Page)).data, [])

  assert.deepStrictEqual(yield* lane.leaks, [])

  const ended = yield* eventually("no request is under way", select(Request, requests), (all) => all.every(({ state }) => state !== "running"))
  const byId = new Map(ended.map((request) => [request.id, request]))
  assert.strictEqual(byId.size, ended.length)
  for (const { id } of answers) assert.deepStrictEqual(byId.get(id), { id, state: "completed", status: 200, receipts: 1 })

  assert.deepStrictEqual(yield* select(Schema.Array(Schema.Unknown), untried), [])

  const passes = yield* recordedPasses(select)
  assert.isAbove(passes.length, runs.length)
  for (const pass of passes) assert.strictEqual(replay(pass)._tag, "Same", `${pass.deploymentId} ${pass.rule} ${pass.decidedAt}`)
})
