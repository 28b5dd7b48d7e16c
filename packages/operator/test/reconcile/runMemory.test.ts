import { assert, describe, it } from "@effect/vitest"
import type { DeploymentId } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import { KubeClient, KubeError } from "@seatrial/kube"
import { Decisions } from "@seatrial/store"
import { Duration, Effect, Option, Semaphore, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Action, act, by } from "../../src/decide/Decision.ts"
import { watchCluster } from "../../src/gather/Cluster.ts"
import { makeGpuLedger } from "../../src/gather/capacity/GpuLedger.ts"
import { makeReferenceLedger } from "../../src/gather/references/ReferenceLedger.ts"
import { noComparison } from "../../src/observation/comparison.ts"
import type { Reconciler } from "../../src/pass/Reconciler.ts"
import { forgetting, makeRunMemory, type RunMemory } from "../../src/RunMemory.ts"
import { reconcile } from "../../src/reconcile.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import type { ProbeTarget } from "../../src/sentinel/probedEngines.ts"
import { makeSentinelKeeper } from "../../src/sentinel/SentinelKeeper.ts"
import { benchmark, deploymentId, observed, otherDeployment, report, revision, run } from "../observations.ts"
import { makeStage } from "./stage.ts"

type StoreName = Exclude<keyof RunMemory, "forget">

const uid = "u"
const serving = { ...revision, status: "active" as const, benchmark }
const probed = (pod: string): ProbeTarget => ({
  pod,
  podUid: uid,
  restarts: 0,
  node: null,
  url: "http://127.0.0.1:1",
  revisionId: revision.id,
  slots: null,
  servedName: "m",
  offers: { scoring: {}, prefixCache: true, seeds: true },
  metrics: engineWire("reference").trialMetrics,
  maxContext: 1_024
})
const engineOf = (id: DeploymentId) => (id === deploymentId ? otherDeployment : deploymentId)

/** Puts something of a run into each store. A store that is missing here is a type error. */
const fillers: { readonly [Name in StoreName]: (memory: RunMemory, id: DeploymentId) => unknown } = {
  pool: ({ pool }, id) => pool.note({ ...run, id, revision }, "queued"),
  followers: ({ followers }, id) => followers.note({ ...run, id, engineRun: engineOf(id), phase: "activated", revision: serving }),
  references: ({ references }, id) => Effect.runSync(references.note(id, { name: "reference-1", organization: "acme" })),
  background: ({ background }, id) => Effect.runSync(background.want(id, [{ kind: "screening", about: "", with: "", start: Effect.never }])),
  watchdog: ({ watchdog }, id) => Effect.runSync(watchdog.expect(id, Option.some(Duration.hours(1)))),
  sentinels: ({ sentinels }, id) => Effect.runSync(sentinels.follow({ ...run, id }, [{ pod: enginePodName(id), uid, target: probed(enginePodName(id)) }])),
  decisions: ({ decisions }, id) =>
    decisions.record({ run: { ...run, id }, observation: { ...observed, released: false }, decision: by("test", act("Acts.", Action.EnsurePod({}))), now: 0 }),
  phases: ({ phases }, id) => Effect.runSync(phases.note(id, "activated", true)),
  benchmarks: ({ benchmarks }, id) => Effect.runSync(benchmarks.note({ ...run, id, revision: serving }, true)),
  loads: ({ loads }, id) =>
    loads.add(
      [deploymentId, otherDeployment].map((each) => ({ run: each, modelId: run.modelId, replicas: 1, requests: 0, oldestReport: 0, newestReport: 0 })),
      id === deploymentId ? 0 : 1
    ),
  scaling: ({ scaling }, id) =>
    Effect.runSync(scaling.note({ ...observed, run: { ...run, id }, load: { changedAt: 0, since: 0, samples: [{ at: 0, requests: 1 }] }, released: false })),
  blockedSince: ({ blockedSince }, id) => blockedSince.set(id, 0),
  refusals: ({ refusals }, id) => refusals.set(id, { kind: "pod", object: "Pod/p", reason: "Forbidden", message: "", since: 0 }),
  missingNodes: ({ missingNodes }, id) => missingNodes.set(enginePodName(id, 1), { uid, since: 0 }),
  withdrawnSince: ({ withdrawnSince }, id) => withdrawnSince.set(id, 0),
  moves: ({ moves }, id) => moves.set(id, { to: revision.id, counters: new Map(), comparison: noComparison, serving: 1, at: 0, startingMillis: 0 }),
  readySince: ({ readySince }, id) => readySince.set(enginePodName(id, 1), 0),
  idleEngines: ({ idleEngines }, id) => idleEngines.set(enginePodName(id, 1), 0),
  futureTimes: ({ futureTimes }, id) => futureTimes.set(id, new Map([["phase 1", 0]])),
  bootVerdicts: ({ bootVerdicts }, id) => bootVerdicts.set(enginePodName(id), { outcome: "same", message: "", failures: 0, at: 0, boot: `${uid} 0` }),
  textTurns: ({ textTurns }, id) => textTurns.set(id, Semaphore.makeUnsafe(1)),
  heldReports: ({ heldReports }, id) => heldReports.set(id, { with: "", since: 0, findings: { report, likelihood: null, seconds: 1 } }),
  mergedAnswers: ({ mergedAnswers }, id) =>
    mergedAnswers.set(id, { answers: ["42"], scores: null, merged: { withinUlpMin: 1, othersEqual: true }, baseQuantized: false, everyModule: true }),
  podExpectations: ({ podExpectations }, id) => podExpectations.set(enginePodName(id), "7"),
  budgetExpectations: ({ budgetExpectations }, id) => budgetExpectations.set(id, 0),
  organizations: ({ organizations }, id) => organizations.set(id, run.orgId),
  released: ({ released }, id) => released.add(id),
  statusWrites: ({ statusWrites }, id) => statusWrites.set(id, { at: 0, version: "7" })
}
const storeNames = Object.keys(fillers).sort()
const fill = (memory: RunMemory, id: DeploymentId) => Object.values(fillers).forEach((filler) => void filler(memory, id))

/** The stores that remember something of the run. */
const storesOf = ({ forget: _, ...stores }: RunMemory, id: DeploymentId): ReadonlyArray<string> =>
  Object.entries(stores)
    .flatMap(([name, store]) => (store.remembers(id) ? [name] : []))
    .sort()

const recording = {
  decisions: Decisions.of({ record: () => Effect.void, removeOlder: () => Effect.succeed(0), read: () => Stream.empty }),
  build: "1",
  keepDays: 14
}
const makeMemory = Effect.fnUntraced(function* (ledger = makeGpuLedger()) {
  const sentinels = yield* Effect.provide(makeSentinelKeeper({ seconds: 60, share: 0.005, alpha: 1e-6, onAlarm: () => Effect.void }), makeStage().services)
  const users = { ledger: makeReferenceLedger(), limits: { inAll: 4, perOrganization: 2 }, enqueueJob: () => Effect.void }
  return yield* makeRunMemory({ enqueue: () => Effect.void, isScheduled: () => Effect.succeed(true), ledger, recording, sentinels, references: users })
})

describe("the memory of runs", () => {
  it.effect("keeps nothing of a forgotten run in any store, and everything of other runs", () =>
    Effect.gen(function* () {
      const memory = yield* makeMemory()
      fill(memory, deploymentId)
      fill(memory, otherDeployment)
      assert.deepStrictEqual(storesOf(memory, deploymentId), storeNames)
      yield* memory.forget(deploymentId)
      assert.deepStrictEqual(storesOf(memory, deploymentId), [])
      assert.deepStrictEqual(storesOf(memory, otherDeployment), storeNames)
      assert.deepStrictEqual([memory.pool.queued(), memory.followers.of(otherDeployment), memory.phases.of(deploymentId)], [[otherDeployment], [], undefined])
    })
  )

  it("accepts no store that cannot forget a run", () => {
    // @ts-expect-error A plain map has no `forget`.
    forgetting({ attempts: new Map<DeploymentId, number>() })
  })
})

/** An operator whose passes are run one by one. */
const makeOperator = Effect.fnUntraced(function* ({ settings, start }: ReturnType<typeof makeStage>) {
  const cluster = yield* watchCluster(settings.namespace, [])
  const memory = yield* makeMemory(cluster.ledger)
  const reconciler: Reconciler = {
    cluster,
    memory,
    settings,
    start,
    usedUpSince: new Map(),
    uptime: { since: () => 0 },
    recordHold: () => Effect.void,
    engineOwner: Effect.succeed(null),
    enqueue: () => Effect.void,
    backlog: () => 0
  }
  const passUntil = Effect.fnUntraced(function* (holds: () => boolean) {
    for (let passes = 0; !holds(); passes++) {
      assert.isBelow(passes, 100, "passes")
      yield* reconcile(reconciler, deploymentId)
      yield* Effect.forEach(Array.from({ length: 30 }), () => Effect.yieldNow)
    }
  })
  return { memory, passUntil, pass: reconcile(reconciler, deploymentId) }
})

describe("a pass", () => {
  it.effect("forgets a run that it releases, except the release, and a run that is gone", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      const { memory, pass, passUntil } = yield* makeOperator(stage)
      stage.setStory("starting")
      yield* passUntil(() => stage.row().phase === "booting")
      stage.cancel(0)
      fill(memory, deploymentId)
      memory.released.delete(deploymentId)
      yield* passUntil(() => stage.released() > 0)
      // The pass that deletes the custom resource is due.
      assert.deepStrictEqual(storesOf(memory, deploymentId), ["released", "watchdog"])
      yield* TestClock.adjust("31 days")
      yield* passUntil(() => stage.kube.names("ModelDeployment").length === 0)
      yield* pass
      assert.deepStrictEqual(storesOf(memory, deploymentId), ["released"])
      fill(memory, deploymentId)
      stage.forget()
      yield* pass
      assert.deepStrictEqual(storesOf(memory, deploymentId), [])
    }).pipe(Effect.scoped, Effect.provide(stage.services))
  })

  it.effect("does not count a run as released while the cluster refuses the deletion of its Secret", () => {
    const stage = makeStage()
    stage.change((row) => ({ ...row, phase: "cancelled", endedAt: 0, applied: { namespace: "seatrial", name: "tiny", current: null } }))
    let isRefused = true
    const { service } = stage.kube
    const remove: typeof service.remove = (...request) =>
      isRefused ? Effect.fail(new KubeError({ reason: "Denied", message: "No permission.", status: 403 })) : service.remove(...request)
    return Effect.gen(function* () {
      const { memory, pass } = yield* makeOperator(stage)
      assert.deepStrictEqual(yield* pass, Option.some(Duration.seconds(10)))
      assert.deepStrictEqual([stage.released(), memory.released.remembers(deploymentId)], [0, false])
      isRefused = false
      assert.deepStrictEqual(yield* pass, Option.none())
      assert.deepStrictEqual([stage.released(), storesOf(memory, deploymentId)], [1, ["released"]])
    }).pipe(Effect.scoped, Effect.provideService(KubeClient, { ...service, remove }), Effect.provide(stage.services))
  })

  it.effect("releases a run once more if another run had created its engine again", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      const { memory, passUntil } = yield* makeOperator(stage)
      stage.setStory("starting")
      const name = enginePodName(deploymentId)
      yield* passUntil(() => stage.kube.names("Pod").includes(name))
      stage.cancel(0)
      memory.released.add(deploymentId)
      yield* passUntil(() => stage.released() > 0)
      assert.deepStrictEqual([stage.kube.names("Pod"), storesOf(memory, deploymentId)], [[], ["released", "watchdog"]])
    }).pipe(Effect.scoped, Effect.provide(stage.services))
  })
})
