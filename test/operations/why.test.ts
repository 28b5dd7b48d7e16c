import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Database, Decisions, Deployments, type NewDecision, Organizations } from "@seatrial/store"
import { makeCaller, newModel } from "@seatrial/store/testing"
import { ConfigProvider, Effect, Layer } from "effect"
import { Env, noTrace, parse, seatrial } from "../../packages/cli/test/runCommand.ts"
import { decide } from "../../packages/operator/src/decide/decide.ts"
import { deltaOf } from "../../packages/operator/src/record/delta.ts"
import { toRecord } from "../../packages/operator/src/record/RecordedObservation.ts"
import { observationOf } from "../../packages/operator/test/observations.ts"

const start = Date.parse("2026-03-01T12:00:00Z")
const [waiting, free] = [observationOf("queued", { freeSlots: 0 }), observationOf("queued", { freeSlots: 2 })]
const [waits, starts] = [decide(waiting, start), decide(free, start + 60_000)]

/** Records two decisions about a new run: it waits, and a minute later it gets GPUs. `wrong`: the rules of another version acted otherwise. */
const record = Effect.fnUntraced(function* (slug: string, env: Readonly<Record<string, string>>, wrong = false) {
  return yield* Effect.gen(function* () {
    const { caller } = yield* makeCaller(slug)
    const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
    const rowOf = (seq: number, decidedAt: number, observation: unknown, decision: typeof waits): NewDecision => ({
      orgId: caller.orgId,
      deploymentId: id,
      series: 1,
      seq,
      decidedAt,
      rule: decision.rule,
      observation: JSON.stringify(observation),
      decision: JSON.stringify(decision)
    })
    const before = toRecord(waiting)
    yield* (yield* Decisions).record("0.1.0+test", [
      rowOf(0, start, before, waits),
      rowOf(1, start + 60_000, deltaOf(before, toRecord(free)), wrong ? { ...starts, actions: [] } : starts)
    ])
    return id
  }).pipe(
    Effect.provide(
      Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql, Decisions.layerSql).pipe(
        Layer.provideMerge([Database.layerMigrated, Ids.layer]),
        Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ ...env, DATABASE_ROLE: "" })))
      )
    )
  )
})

layer(Env.layer, { excludeTestServices: true, timeout: 60_000 })("seatrial why", (it) => {
  it.effect(
    "lists when which rule decided, and shows what had changed at a time",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        const id = yield* record("why", env)
        const listed = yield* seatrial(["why", id], env)
        assert.strictEqual(listed.code, 0, listed.err)
        assert.match(listed.out, /^2026-03-01T12:00:00\.000Z +queued\.noFreeGpus +- +- +The deployment waits for/mu)
        assert.match(listed.out, /^2026-03-01T12:01:00\.000Z +queued\.freeGpus +Enter /mu)
        const shown = yield* seatrial(["why", id, "--at", "2026-03-01T13:00:00Z"], env)
        assert.match(shown.out, /^rule +queued\.freeGpus$/mu, shown.err)
        assert.match(shown.out, /^changed +freeSlots +0 -> 2$/mu)
        const earlier = yield* seatrial(["why", id, "--at", "2026-03-01T12:00:59Z"], env)
        assert.match(earlier.out, /^rule +queued\.noFreeGpus$/mu)
        assert.match(earlier.out, /freeSlots +0$/mu)
        for (const wrong of [
          ["--at", "2026-02-01"],
          ["--at", "noon"]
        ]) {
          const none = yield* seatrial(["why", id, ...wrong], env)
          assert.notStrictEqual(none.code, 0)
          noTrace(none)
        }
      }),
    60_000
  )

  it.effect(
    "decides again offline what it has written to a file, and reports a difference",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        const file = join(mkdtempSync(join(tmpdir(), "why-")), "why.json")
        const replayed = Effect.fnUntraced(function* (slug: string, wrong: boolean) {
          writeFileSync(file, (yield* seatrial(["why", yield* record(slug, env, wrong), "--json"], env)).out)
          // Without a database.
          return yield* seatrial(["why", "--replay", file, "--json"])
        })
        const same = yield* replayed("replay-same", false)
        assert.strictEqual(same.code, 0, same.err)
        assert.deepInclude(parse(same.out), {
          at: "2026-03-01T12:01:00.000Z",
          build: "0.1.0+test",
          result: "same",
          differs: [],
          rule: "queued.freeGpus",
          now: "queued.freeGpus",
          actions_now: ["Enter"]
        })
        const differs = yield* replayed("replay-differs", true)
        assert.strictEqual(differs.code, 1)
        assert.match(differs.err, /1 of 2 decisions differ/u)
        writeFileSync(file, "{}")
        const broken = yield* seatrial(["why", "--replay", file])
        assert.deepStrictEqual([broken.code, broken.out], [2, ""])
        assert.match(broken.err, /cannot be read as the output of/u)
        for (const more of [["dep_01k3v7m8q2w4x6y8z0a2b4c6d8"], ["--at", "15m"]]) {
          const both = yield* seatrial(["why", "--replay", file, ...more])
          assert.deepStrictEqual([both.code, both.out], [2, ""])
          assert.match(both.err, /omit the deployment and --at/u)
        }
      }),
    60_000
  )
})

layer(Env.layer, { excludeTestServices: true, timeout: 60_000 })("seatrial upgrade-preview", (it) => {
  it.effect(
    "lists the recorded decisions that this version makes differently, and only these",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        yield* record("preview-same", env)
        const same = yield* seatrial(["upgrade-preview", "--json"], env)
        assert.deepStrictEqual([same.code, parse(same.out)], [0, []], same.err)
        assert.match(same.err, /Replayed 2 recorded decisions: 0 differ/u)
        const id = yield* record("preview-differs", env, true)
        const differs = yield* seatrial(["upgrade-preview", "--json"], env)
        assert.strictEqual(differs.code, 1)
        assert.deepInclude(parse(differs.out), {
          deployment: id,
          at: "2026-03-01T12:01:00.000Z",
          build: "0.1.0+test",
          differs: ["actions"],
          rule: "queued.freeGpus",
          actions: [],
          new_rule: "queued.freeGpus",
          new_actions: ["Enter"],
          new_message: starts.message
        })
        assert.match(differs.err, /Replayed 4 recorded decisions: 1 differ/u)
      }),
    60_000
  )
})
