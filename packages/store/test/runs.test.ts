import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { canEnter, DeploymentDetail, DeploymentId, fallsBack, isFinished, maxRequeues, Phase, workingPhases } from "@seatrial/domain"
import { Effect, Option, Redacted, Schema } from "effect"
import { Deployments, HubConnections, Organizations, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { capabilities, checks, engineImage, estimate, facts, makeCaller, newModel, settings, speedRow, walk } from "./support/index.ts"

layer(layerStore, { excludeTestServices: true })("Runs", (it) => {
  it.effect("a run is observed completely, and its detail matches the contract", () =>
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
      yield* runs.recordBenchmark(id, caller.orgId, { suite: "b", suite_version: 1, input_tokens: 1, output_tokens: 1, seed: 1, steps: [] }, speedRow)
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual(run.revision?.facts, facts)
      assert.deepStrictEqual(run.revision?.estimate, estimate)
      assert.deepStrictEqual(run.revision?.checks, { ...checks, checks: [...checks.checks, speedRow] })
      assert.strictEqual(run.revision?.benchmark?.suite, "b")
      assert.deepStrictEqual(
        run.history.map(({ phase }) => phase),
        ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking"]
      )
      assert.strictEqual(run.history.at(-1)?.at, run.phaseSince)
      const detail = Option.getOrThrow(yield* deployments.find(caller.orgId, id))
      assert.isTrue(Schema.is(DeploymentDetail)(detail))
      assert.deepStrictEqual(detail.checks, [...checks.checks, speedRow])
      assert.deepStrictEqual([detail.hf_revision, detail.revision?.gpu_pool, detail.revision?.verified_at], [facts.commit, "Simulated-GPU", null])
      assert.isTrue(Option.isNone(yield* runs.observe(DeploymentId.make("dep_00000000000000000000000000"))))
    })
  )

  it.effect("if a cancel and a transition race, exactly one wins, every time", () =>
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

  it.effect.prop(
    "a run moves only as the phases allow for any sequence of attempts, and a finished run never changes",
    [Schema.Array(Schema.Tuple([Phase, Phase])).check(Schema.isMaxLength(25))],
    ([moves]) =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const deployments = yield* Deployments
        const runs = yield* Runs
        const { caller } = yield* makeCaller(`prop-${crypto.randomUUID()}`)
        const { orgId } = caller
        const { id } = yield* deployments.create(newModel(caller, "k"))
        yield* runs.recordScreening({ id, orgId, facts, settings, engineVersion: "reference-1", engineImage, estimate, capabilities })
        const check = sql`UPDATE revisions SET checks = ${sql.json(checks)} WHERE org_id = ${orgId}`
        yield* check
        let model: { readonly phase: Phase; readonly requeues: number } = { phase: "screening", requeues: 0 }
        const history: Array<Phase> = ["screening"]
        for (const [pick, to] of moves) {
          // Half of the attempts start from the current phase, so that the run makes progress.
          const from = workingPhases.some((phase) => phase === pick) ? model.phase : pick
          const moved = yield* Effect.catchDefect(runs.enter({ id, orgId, from, to, reason: "Property" }), () => Effect.succeed(false))
          const allowed = from === model.phase && canEnter(from, to, model.requeues) && !(to === "activated" && from !== "activating")
          assert.strictEqual(moved, allowed)
          if (!allowed) continue
          const back = fallsBack(from, to)
          // A requeued run is checked again.
          if (back) yield* check
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

  it.effect("a run returns to queued at most three times", () =>
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

  it.effect("a concurrent repeat of a transition is recorded once, and a failure's text is truncated", () =>
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

  it.effect("screening creates one revision, and results are accepted only in their phase", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("results")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k"))
      const screened = { id, orgId, facts, settings, engineVersion: "reference-1", engineImage, estimate, capabilities }
      assert.deepStrictEqual(yield* Effect.all([runs.recordScreening(screened), runs.recordScreening(screened)], { concurrency: 2 }), [true, true])
      assert.deepStrictEqual(yield* sql`SELECT capabilities FROM revisions WHERE org_id = ${orgId}`, [{ capabilities }])
      assert.isFalse(yield* runs.recordChecks(id, orgId, checks))
      yield* runs.enter({ id, orgId, from: "screening", to: "checking", reason: "Test" })
      assert.isFalse(yield* runs.recordScreening(screened))
      const recordImage = (image: string, digest: string | null) => runs.recordEngineImage(id, orgId, { image, digest })
      assert.isTrue(yield* recordImage("engine:1", null))
      assert.isFalse(yield* recordImage("engine:1", null))
      assert.isFalse(yield* recordImage("engine:2", "sha256:2"))
      // The digest may become known later, and is recorded once.
      assert.isTrue(yield* recordImage("engine:1", "sha256:1"))
      assert.isFalse(yield* recordImage("engine:1", "sha256:2"))
      assert.deepInclude(Option.getOrThrow(yield* runs.observe(id)).revision, { engineImage: "engine:1", engineDigest: "sha256:1" })
      assert.isTrue(yield* runs.recordChecks(id, orgId, checks))
      yield* deployments.cancel(orgId, id, caller.userId)
      assert.isFalse(yield* runs.recordChecks(id, orgId, { ...checks, passed: false }))
      assert.deepStrictEqual(Option.getOrThrow(yield* runs.observe(id)).revision?.checks, checks)
    })
  )

  it.effect("the hub token is the token of the user who started the run", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const connections = yield* HubConnections
      const { caller, user } = yield* makeCaller("token")
      assert.isTrue(Option.isNone(yield* runs.hubToken(caller.orgId, user.id)))
      yield* connections.set(caller.orgId, user.id, Redacted.make("hub-token"))
      assert.strictEqual(Redacted.value(Option.getOrThrow(yield* runs.hubToken(caller.orgId, user.id))), "hub-token")
      assert.isTrue(Option.isNone(yield* runs.hubToken(caller.orgId, null)))
    })
  )

  it.effect("an applied object uses the token that its organization shares, also after another is shared, and no other organization's token", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const connections = yield* HubConnections
      const organizations = yield* Organizations
      const { caller, user } = yield* makeCaller("shared-token")
      const other = yield* makeCaller("shared-token-other")
      const second = yield* organizations.addUser({ orgId: caller.orgId, email: "second@shared-token.test", name: "Second", role: "member" })
      const ofObjects = Effect.map(runs.hubToken(caller.orgId, null), (token) => Option.getOrNull(Option.map(token, Redacted.value)))
      assert.isFalse(yield* connections.share(caller.orgId, user.id))
      yield* connections.set(caller.orgId, user.id, Redacted.make("first"))
      yield* connections.set(caller.orgId, second.id, Redacted.make("second"))
      assert.isNull(yield* ofObjects)
      const shared = yield* Effect.all([connections.share(caller.orgId, user.id), connections.share(caller.orgId, second.id)], { concurrency: "unbounded" })
      assert.deepStrictEqual(shared, [true, true])
      assert.strictEqual((yield* connections.list(caller.orgId)).filter((one) => one.shared).length, 1)
      yield* connections.share(caller.orgId, second.id)
      assert.strictEqual(yield* ofObjects, "second")
      // A newer token of the same user stays shared.
      yield* connections.set(caller.orgId, second.id, Redacted.make("third"))
      assert.strictEqual(yield* ofObjects, "third")
      assert.isTrue(Option.isNone(yield* runs.hubToken(other.caller.orgId, null)))
      assert.isFalse(yield* connections.share(other.caller.orgId, second.id))
      yield* connections.remove(caller.orgId, second.id)
      assert.isNull(yield* ofObjects)
      assert.isFalse(yield* connections.share(caller.orgId, null))
    })
  )
})
