import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { canEnter, DeploymentDetail, DeploymentId, isFinished, maxRequeues, Phase, workingPhases } from "@seatrial/domain"
import { Effect, Fiber, Option, Queue, Redacted, Schema, Stream } from "effect"
import { Deployments, HubConnections, Runs } from "../src/index.ts"
import { checks, estimate, facts, layerStore, makeCaller, makeServing, newModel, settings, soon, walk } from "./stage.ts"

layer(layerStore, { excludeTestServices: true })("Runs", (it) => {
  it.effect("a run is observed whole, and its detail is the contract's", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller, user } = yield* makeCaller("observe")
      const { id } = yield* deployments.create(newModel(caller, "k", "tiny", { serving: { max_context: 2_048 } }))
      const fresh = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual(
        [fresh.phase, fresh.revision, fresh.source, fresh.servingRequest, fresh.startedBy, fresh.endpoints, fresh.olderRun],
        ["screening", null, { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" }, { max_context: 2_048 }, user.id, [], null]
      )
      yield* walk(caller, id, "benchmarking")
      yield* runs.recordBenchmark(id, caller.orgId, { suite: "b", suite_version: 1, input_tokens: 1, output_tokens: 1, seed: 1, steps: [] })
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual(run.revision?.facts, facts)
      assert.deepStrictEqual(run.revision?.estimate, estimate)
      assert.deepStrictEqual(run.revision?.checks, checks)
      assert.strictEqual(run.revision?.benchmark?.suite, "b")
      assert.deepStrictEqual(
        run.history.map(({ phase }) => phase),
        ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking"]
      )
      assert.strictEqual(run.history.at(-1)?.at, run.phaseSince)
      const detail = Option.getOrThrow(yield* deployments.find(caller.orgId, id))
      assert.isTrue(Schema.is(DeploymentDetail)(detail))
      assert.deepStrictEqual(detail.checks, checks.checks)
      assert.deepStrictEqual([detail.hf_revision, detail.revision?.gpu_pool, detail.revision?.verified_at], [facts.commit, "Simulated-GPU", null])
      assert.isTrue(Option.isNone(yield* runs.observe(DeploymentId.make("dep_00000000000000000000000000"))))
    })
  )

  it.effect("of a cancel and a step that race, exactly one wins, every time", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("race")
      const { orgId } = caller
      for (let round = 0; round < 25; round++) {
        const { id } = yield* deployments.create(newModel(caller, `k${round}`, `m${round}`))
        const [cancelled, failed] = yield* Effect.all(
          [
            Effect.match(deployments.cancel(orgId, id, caller.userId), { onFailure: () => false, onSuccess: () => true }),
            runs.enter({ id, orgId, from: "screening", to: "failed", reason: "Refused", failure: { code: "access_required", text: "gated" } })
          ],
          { concurrency: "unbounded" }
        )
        assert.notStrictEqual(cancelled, failed)
        const detail = Option.getOrThrow(yield* deployments.find(orgId, id))
        assert.deepStrictEqual(
          detail.phases.map(({ status }) => status),
          ["screening", cancelled ? "cancelled" : "failed"]
        )
        assert.strictEqual(detail.failure_detail, failed ? "access_required: gated" : null)
      }
    })
  )

  it.effect("of a cancel and an activation that race, exactly one wins", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("race-activate")
      const { orgId } = caller
      for (let round = 0; round < 5; round++) {
        const { id } = yield* deployments.create(newModel(caller, `k${round}`, `m${round}`))
        yield* walk(caller, id, "activating")
        const [cancelled, activated] = yield* Effect.all(
          [
            Effect.match(deployments.cancel(orgId, id, caller.userId), { onFailure: () => false, onSuccess: () => true }),
            runs.activate({ id, orgId, from: "activating" })
          ],
          { concurrency: "unbounded" }
        )
        assert.notStrictEqual(cancelled, activated)
        const run = Option.getOrThrow(yield* runs.observe(id))
        assert.strictEqual(run.activeRevisionId !== null, activated)
        assert.strictEqual(run.revision?.status, activated ? "active" : "draft")
      }
    })
  )

  it.effect.prop(
    "whatever is tried, a run moves only as the phases allow, and a finished one never changes",
    [Schema.Array(Schema.Tuple([Phase, Phase])).check(Schema.isMaxLength(25))],
    ([moves]) =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const deployments = yield* Deployments
        const runs = yield* Runs
        const { caller } = yield* makeCaller(`prop-${crypto.randomUUID()}`)
        const { orgId } = caller
        const { id } = yield* deployments.create(newModel(caller, "k"))
        yield* runs.recordScreening({ id, orgId, facts, settings, engineVersion: "reference-1", estimate })
        yield* sql`UPDATE revisions SET checks = ${sql.json(checks)} WHERE org_id = ${orgId}`
        let model: { readonly phase: Phase; readonly requeues: number } = { phase: "screening", requeues: 0 }
        const history: Array<Phase> = ["screening"]
        for (const [pick, to] of moves) {
          // Half of the tries come from where the run is, so that it gets somewhere.
          const from = workingPhases.some((phase) => phase === pick) ? model.phase : pick
          const moved = yield* Effect.catchDefect(runs.enter({ id, orgId, from, to, reason: "Property" }), () => Effect.succeed(false))
          const allowed = from === model.phase && canEnter(from, to, model.requeues) && !(to === "activated" && from === "benchmarking")
          assert.strictEqual(moved, allowed)
          if (!allowed) continue
          const back = to === "queued" && (from === "provisioning" || from === "booting")
          model = { phase: to, requeues: model.requeues + (back ? 1 : 0) }
          history.push(to)
        }
        const run = Option.getOrThrow(yield* runs.observe(id))
        assert.deepStrictEqual([run.phase, run.requeues], [model.phase, model.requeues])
        assert.strictEqual(run.endedAt !== null, isFinished(model.phase))
        assert.deepStrictEqual(
          run.history.map(({ phase }) => phase),
          history
        )
      }),
    { arbitrary: { runs: 15 } }
  )

  it.effect("a run falls back to queued three times and no more", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("requeue")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k"))
      const enter = (from: Phase, to: Phase) => runs.enter({ id, orgId, from, to, reason: "NodeLost" })
      yield* enter("screening", "provisioning")
      for (let time = 0; time < maxRequeues; time++) {
        assert.isTrue(yield* enter("provisioning", "queued"))
        assert.isTrue(yield* enter("queued", "provisioning"))
      }
      assert.isFalse(yield* enter("provisioning", "queued"))
      assert.isTrue(yield* enter("provisioning", "failed"))
      assert.strictEqual(Option.getOrThrow(yield* deployments.find(orgId, id)).failure_detail, "internal: NodeLost")
    })
  )

  it.effect("the same step twice at once is recorded once, and a failure's text is kept short", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("once")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k"))
      const steps = yield* Effect.forEach(
        Array.from({ length: 8 }),
        () => runs.enter({ id, orgId, from: "screening", to: "materializing", reason: "Screened" }),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(steps.filter((won) => won).length, 1)
      yield* runs.enter({ id, orgId, from: "materializing", to: "failed", reason: "Hash", failure: { code: "hash_mismatch", text: "x".repeat(2_000) } })
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual(
        run.history.map(({ phase, reason }) => `${phase} ${reason}`),
        ["screening Created", "materializing Screened", "failed Hash"]
      )
      assert.strictEqual(run.failure?.text.length, 500)
    })
  )

  it.effect("screening makes one revision, and results are taken only in their phase", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("results")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k"))
      const screened = { id, orgId, facts, settings, engineVersion: "reference-1", estimate }
      assert.deepStrictEqual(yield* Effect.all([runs.recordScreening(screened), runs.recordScreening(screened)], { concurrency: 2 }), [true, true])
      assert.strictEqual((yield* sql`SELECT 1 FROM revisions WHERE org_id = ${orgId}`).length, 1)
      assert.isFalse(yield* runs.recordChecks(id, orgId, checks))
      yield* runs.enter({ id, orgId, from: "screening", to: "checking", reason: "Test" })
      assert.isFalse(yield* runs.recordScreening(screened))
      assert.isTrue(yield* runs.recordChecks(id, orgId, checks))
      yield* deployments.cancel(orgId, id, caller.userId)
      assert.isFalse(yield* runs.recordChecks(id, orgId, { ...checks, passed: false }))
      assert.deepStrictEqual(Option.getOrThrow(yield* runs.observe(id)).revision?.checks, checks)
    })
  )

  it.effect("an activation supersedes the earlier revision, freezes the verification and is audited", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("supersede")
      const { orgId } = caller
      const first = yield* makeServing(caller, "k1")
      const { id } = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId: first.modelId, ref: null } }))
      yield* walk(caller, id, "activating")
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(id)).activeRevisionId, first.revisionId)
      assert.isTrue(yield* runs.activate({ id, orgId, from: "activating" }))
      assert.isFalse(yield* runs.activate({ id, orgId, from: "activating" }))
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual([run.phase, run.revision?.status, run.activeRevisionId], ["activated", "active", run.revision?.id])
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(first.operation.id)).revision?.status, "superseded")
      const rows = yield* sql`
        SELECT verification, actor_kind, a.before, a.after ->> 'revision_id' AS after FROM revisions r, audit_events a
        WHERE r.org_id = ${orgId} AND r.id = ${run.revision?.id} AND a.org_id = ${orgId} AND a.action = 'activated'
        ORDER BY a.created_at DESC, a.id DESC LIMIT 1`
      assert.deepStrictEqual<unknown>(rows, [
        {
          verification: { checks: checks.checks, outputFingerprints: checks.fingerprints, fingerprintCard: checks.fingerprint_card },
          actor_kind: "system",
          before: { revision_id: first.revisionId },
          after: run.revision?.id
        }
      ])
      assert.isNotNull(Option.getOrThrow(yield* deployments.find(orgId, id)).revision?.verified_at)
    })
  )

  it.effect("a run that is not to serve ends verified, and changes nothing that serves", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("candidate")
      const { orgId } = caller
      const first = yield* makeServing(caller, "k1")
      const target = { _tag: "Redeploy", modelId: first.modelId, ref: null } as const
      const { id } = yield* deployments.create(newModel(caller, "k2", "", { target, serve: false }))
      yield* walk(caller, id, "benchmarking")
      assert.isTrue(yield* runs.activate({ id, orgId, from: "benchmarking" }))
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual([run.phase, run.revision?.status, run.activeRevisionId], ["activated", "draft", first.revisionId])
      assert.isNotNull(Option.getOrThrow(yield* deployments.find(orgId, id)).revision?.verified_at)
      const serving = yield* deployments.create(newModel(caller, "k3", "", { target }))
      yield* walk(caller, serving.id, "benchmarking")
      assert.isFalse(yield* runs.activate({ id: serving.id, orgId, from: "benchmarking" }))
    })
  )

  it.effect("nothing serves whose checks did not pass", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("unchecked")
      const { id } = yield* deployments.create(newModel(caller, "k"))
      yield* walk(caller, id, "activating", { ...checks, passed: false })
      const exit = yield* Effect.exit(runs.activate({ id, orgId: caller.orgId, from: "activating" }))
      assert.strictEqual(exit._tag, "Failure")
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(id)).phase, "activating")
    })
  )

  it.effect("a newer run of a model waits for the older one, and live has what needs work until it is released", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("live")
      const { orgId } = caller
      const older = yield* deployments.create(newModel(caller, "k1"))
      const target = { _tag: "Redeploy", modelId: older.modelId, ref: null } as const
      const between = yield* deployments.create(newModel(caller, "k2", "", { target }))
      const newer = yield* deployments.create(newModel(caller, "k3", "", { target }))
      const [first, second, third] = [older.id, between.id, newer.id].toSorted()
      if (first === undefined || second === undefined || third === undefined) return assert.fail()
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(third)).olderRun, first)
      yield* deployments.cancel(orgId, first, caller.userId)
      assert.strictEqual(Option.getOrThrow(yield* runs.observe(third)).olderRun, second)
      const mine = Effect.map(runs.live, (all) => [first, second, third].filter((id) => all.includes(id)))
      assert.deepStrictEqual(yield* mine, [first, second, third])
      yield* runs.release(first, orgId)
      yield* runs.release(second, orgId)
      assert.deepStrictEqual(yield* mine, [second, third])
      const served = yield* makeServing(caller, "k4", "served")
      yield* runs.release(served.operation.id, orgId)
      assert.include(yield* runs.live, served.operation.id)
    })
  )

  it.effect("changes tell of creates, cancels and steps, and after a lost connection of everything that is live", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("changes")
      const heard = yield* Queue.unbounded<DeploymentId>()
      const missed = yield* deployments.create(newModel(caller, "k0", "m0"))
      const fibre = yield* Effect.forkChild(Stream.runForEach(runs.changes, (id) => Queue.offer(heard, id)))
      const hear = Effect.fnUntraced(function* (expected: DeploymentId) {
        while ((yield* Queue.take(heard)) !== expected);
      })
      yield* hear(missed.id)
      const made = yield* deployments.create(newModel(caller, "k1", "m1"))
      yield* hear(made.id)
      yield* runs.enter({ id: made.id, orgId: caller.orgId, from: "screening", to: "materializing", reason: "Test" })
      yield* hear(made.id)
      yield* soon(Effect.map(sql`SELECT 1 FROM outbox WHERE deployment_id = ${made.id}`, (rows) => rows.length === 0))
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN "deployments"'`
      yield* hear(made.id)
      yield* deployments.cancel(caller.orgId, made.id, caller.userId)
      yield* hear(made.id)
      yield* Fiber.interrupt(fibre)
    })
  )

  it.effect("needed commits are those of unfinished and of serving runs; the hub token is the starter's", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const connections = yield* HubConnections
      const { caller, user } = yield* makeCaller("needed")
      const { id } = yield* deployments.create(newModel(caller, "k"))
      const needed = { repo: "seatrial/needed", commit: facts.commit }
      const needs = Effect.map(runs.neededCommits, (all) => all.some(({ repo }) => repo === needed.repo))
      yield* runs.recordScreening({ id, orgId: caller.orgId, facts: { ...facts, ...needed }, settings, engineVersion: "reference-1", estimate })
      assert.isTrue(yield* needs)
      yield* deployments.cancel(caller.orgId, id, caller.userId)
      assert.isFalse(yield* needs)
      assert.isTrue(Option.isNone(yield* runs.hubToken(caller.orgId, user.id)))
      yield* connections.set(caller.orgId, user.id, Redacted.make("hub-token"))
      assert.strictEqual(Redacted.value(Option.getOrThrow(yield* runs.hubToken(caller.orgId, user.id))), "hub-token")
      assert.isTrue(Option.isNone(yield* runs.hubToken(caller.orgId, null)))
    })
  )
})
