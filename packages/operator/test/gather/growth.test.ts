import { assert, describe, it } from "@effect/vitest"
import { DeploymentId, ModelId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Schema } from "effect"
import { makePool } from "../../src/gather/capacity/Pool.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import type { PodClass } from "../../src/resources/PodClass.ts"
import { deploymentId, hostClass, modelId, observationOf, otherDeployment, podClass, revision } from "../observations.ts"

const otherModel = Schema.decodeSync(ModelId)("mdl_01k3v7m8q2w4x6y8z0a2b4c6e0")
const limits = { minReplicas: 1, maxReplicas: 4, target: 0.8 }
const active = { revision: { ...revision, status: "active" as const }, replicas: 4, scaling: limits }
const serving = observationOf("activated", {}, active).run
const queued: Run = { ...observationOf("queued").run, id: otherDeployment, engineRun: otherDeployment, modelId: otherModel, createdAt: 5 }

const third = Schema.decodeSync(DeploymentId)("dep_01k3v7m8q2w4x6y8z0a2b4c6e0")
const fourth = Schema.decodeSync(DeploymentId)("dep_01k3v7m8q2w4x6y8z0a2b4c6e1")

/** A pool with a node of that many GPUs, on which these engines of the serving run hold one each. */
const poolWith = (gpus: number, ordinals: ReadonlyArray<number>) => {
  const pool = makePool()
  pool.ledger.setNode("node-1", {
    metadata: { name: "node-1" },
    status: { allocatable: { "nvidia.com/gpu": String(gpus) }, conditions: [{ type: "Ready", status: "True" }] }
  })
  const place = (name: string, node = "node-1", deletionTimestamp?: string) =>
    pool.ledger.setPod(name, {
      metadata: {
        name,
        ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
        labels: { "seatrial.dev/host-class": hostClass.name, "seatrial.dev/organization": "acme" }
      },
      spec: { nodeName: node, containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": "1" } } }] }
    })
  for (const ordinal of ordinals) place(enginePodName(deploymentId, ordinal))
  const growth = (change: Partial<Run> = {}, placed = ordinals.length - 1, on: PodClass = podClass) =>
    pool.growth({ run: { ...serving, ...change }, podClass: on, classes: [on], reservations: [], funding: null, hasFirst: true, placed })
  return { pool, place, growth }
}

describe("the engines above the first", () => {
  it("get the GPUs that are free", () => {
    assert.deepStrictEqual(poolWith(3, [0]).growth(), { room: 2, limit: "gpus", yields: 0 })
    assert.deepStrictEqual(poolWith(1, [0]).growth(), { room: 0, limit: "gpus", yields: 0 })
  })

  it("count toward the organization's limit", () => {
    assert.deepStrictEqual(poolWith(4, [0, 1]).growth({ gpuLimit: 3 }), { room: 1, limit: "organization", yields: 0 })
  })

  it("leave the GPUs that queued runs could use, and give theirs if those are too few", () => {
    const { growth, pool } = poolWith(3, [0, 1])
    assert.strictEqual(growth().room, 1)
    pool.note(queued, "queued")
    assert.deepStrictEqual(growth(), { room: 0, limit: "queue", yields: 0 })
    const full = poolWith(2, [0, 1])
    full.pool.note(queued, "queued")
    assert.deepStrictEqual(full.growth(), { room: 0, limit: "gpus", yields: 1 })
    assert.strictEqual(full.growth({}, 0).yields, 0)
  })

  const keptCases: ReadonlyArray<readonly [what: string, change: Partial<Run>, waiting: Partial<Run>, yields: number]> = [
    ["a fixed number is kept", { scaling: null }, {}, 0],
    ["the least number of the autoscaler is kept", { scaling: { ...limits, minReplicas: 2 } }, {}, 1],
    ["an earlier revision keeps what the newer one lacks", { scaling: null, replicas: 3, newer: ["a"] }, {}, 0],
    ["an earlier revision gives what the newer one has", { scaling: null, replicas: 3, newer: ["a", "b"] }, {}, 1],
    ["a new revision of the model gets one", { scaling: null }, { modelId }, 1],
    [
      "a new revision of the model gets the GPUs that it needs",
      { scaling: null },
      { modelId, revision: { ...revision, estimate: { ...revision.estimate, gpu_count: 2 } } },
      2
    ]
  ]
  for (const [what, change, waiting, yields] of keptCases)
    it(`give their GPUs to queued runs: ${what}`, () => {
      const { growth, pool } = poolWith(3, [0, 1, 2])
      pool.note({ ...queued, ...waiting }, "queued")
      for (const id of [third, fourth]) pool.note({ ...queued, id, engineRun: id, createdAt: 7 }, "queued")
      assert.strictEqual(growth(change).yields, yields)
      const held = poolWith(8, [0, 1, 2])
      held.pool.note({ ...queued, ...waiting }, "waiting")
      assert.strictEqual(held.growth({ gpuLimit: 3, ...change }).yields, Math.min(waiting.revision === undefined ? 1 : 2, yields))
    })

  it("wait for older runs in the queue before they give GPUs to a new revision of their model", () => {
    const { growth, pool } = poolWith(2, [0, 1])
    pool.note({ ...queued, modelId }, "queued")
    pool.note({ ...queued, id: third, engineRun: third, createdAt: 4 }, "queued")
    assert.strictEqual(growth({ scaling: null }).yields, 0)
  })

  it("give their GPUs once: what another model gives already counts", () => {
    const { growth, pool } = poolWith(2, [0, 1])
    pool.note(queued, "queued")
    pool.note({ ...serving, id: third }, "activated", false, { fleet: { organization: "acme", otherGpus: 1, spareGpus: 1, lacks: null, yieldingGpus: 1 } })
    assert.strictEqual(growth().yields, 0)
  })

  /** On eight GPUs, with three engines of the model and a run that waits. */
  const heldBack = (limit: number | null, change: Partial<Run> = {}, choice: Parameters<ReturnType<typeof makePool>["note"]>[3] = {}) => {
    const { growth, pool } = poolWith(8, [0, 1, 2])
    pool.note({ ...queued, ...change }, "waiting", false, choice)
    return { pool, grown: growth({ gpuLimit: limit }) }
  }
  const needing = (gpus: number): Partial<Run> => ({ revision: { ...revision, estimate: { ...revision.estimate, gpu_count: gpus } } })
  const heldCases: ReadonlyArray<readonly [what: string, grown: ReturnType<typeof heldBack>["grown"], expected: ReturnType<typeof heldBack>["grown"]]> = [
    ["give way to a run that only the limit of its organization holds back", heldBack(3).grown, { room: 0, limit: "organization", yields: 1 }],
    ["give way with as many as that run needs", heldBack(3, needing(2)).grown, { room: 0, limit: "organization", yields: 2 }],
    ["leave the room under the limit to that run", heldBack(5, needing(2)).grown, { room: 0, limit: "queue", yields: 0 }],
    ["give no GPUs to a run that even then would not fit", heldBack(3, needing(3)).grown, { room: 0, limit: "organization", yields: 0 }],
    ["give no GPUs to a run of another organization", heldBack(3, { orgSlug: "globex" }).grown, { room: 0, limit: "organization", yields: 0 }],
    ["give no GPUs to a run that an older one holds back", heldBack(3, { olderRun: third }).grown, { room: 0, limit: "organization", yields: 0 }],
    ["give no GPUs to a run without funds", heldBack(3, {}, { isUnfunded: true }).grown, { room: 0, limit: "organization", yields: 0 }],
    ["give no GPUs without a limit", heldBack(null).grown, { room: 5, limit: "gpus", yields: 0 }]
  ]
  for (const [what, grown, expected] of heldCases) it(what, () => assert.deepStrictEqual(grown, expected))

  it("are told of a run that the limit holds back, and give way to it once", () => {
    const { pool } = heldBack(3)
    assert.isTrue(pool.goesFirst(otherDeployment))
    pool.note({ ...queued, olderRun: third }, "waiting")
    assert.isFalse(pool.goesFirst(otherDeployment))
    pool.note(queued, "waiting", false, { isUnfunded: true })
    assert.isFalse(pool.goesFirst(otherDeployment))
    const { growth, pool: shared } = poolWith(8, [0, 1, 2])
    shared.note(queued, "waiting")
    shared.note({ ...serving, id: third }, "activated", false, { fleet: { organization: "acme", otherGpus: 1, spareGpus: 1, lacks: null, yieldingGpus: 1 } })
    assert.strictEqual(growth({ gpuLimit: 3 }).yields, 0)
    shared.note({ ...serving, id: third }, "activated", false, { fleet: { organization: "globex", otherGpus: 1, spareGpus: 1, lacks: null, yieldingGpus: 1 } })
    assert.strictEqual(growth({ gpuLimit: 3 }).yields, 1)
  })

  it("are granted once: a granted engine counts before its pod is visible", () => {
    const { growth, place, pool } = poolWith(2, [0])
    const other = observationOf("queued", {}, { id: otherDeployment, engineRun: otherDeployment }).run
    const free = () => pool.view({ run: other, podClass, classes: [podClass], reservations: [] }).freeSlots
    assert.strictEqual(free(), 1)
    pool.note(serving, "activated", false, { otherEngines: [1] })
    assert.strictEqual(free(), 0)
    place(enginePodName(deploymentId, 1))
    assert.strictEqual(free(), 0)
    pool.note(serving, "activated", false, { otherEngines: [] })
    pool.ledger.setPod(enginePodName(deploymentId, 1), undefined)
    assert.strictEqual(free(), 1)
    assert.strictEqual(growth().room, 1)
  })

  it("know that an engine of an earlier revision ends, until its pod is gone", () => {
    const { growth, place, pool } = poolWith(2, [0])
    const pod = enginePodName(third)
    place(pod)
    const note = (model: ModelId) =>
      pool.note({ ...serving, id: third }, "activated", false, {
        fleet: { organization: "acme", otherGpus: 0, spareGpus: 0, lacks: null, yieldingGpus: 0, leaving: { model, pods: [pod] } }
      })
    note(otherModel)
    assert.deepStrictEqual(growth(), { room: 0, limit: "gpus", yields: 0 })
    note(modelId)
    assert.deepStrictEqual(growth(), { room: 0, limit: "gpus", yields: 0, freeing: true })
    pool.ledger.setPod(pod, undefined)
    assert.deepStrictEqual(growth(), { room: 1, limit: "gpus", yields: 0 })
  })

  it("know that a pod on the class's nodes is being deleted, of whatever model", () => {
    const { growth, place, pool } = poolWith(2, [0])
    const pod = enginePodName(otherDeployment)
    place(pod)
    assert.isUndefined(growth().freeing)
    place(pod, "node-1", "2026-01-01T00:00:00Z")
    assert.isTrue(growth().freeing)
    place(pod, "elsewhere", "2026-01-01T00:00:00Z")
    assert.isUndefined(growth().freeing)
    place(pod, "node-1", "2026-01-01T00:00:00Z")
    pool.ledger.setPod(pod, undefined)
    assert.isUndefined(growth().freeing)
  })

  it("are woken when GPUs are freed, and when a run begins to wait", () => {
    const { pool } = poolWith(2, [0, 1])
    pool.note(serving, "activated", false, { fleet: { organization: "acme", otherGpus: 1, spareGpus: 1, lacks: "gpus", yieldingGpus: 0 } })
    assert.strictEqual(pool.lacks(serving.id), "gpus")
    assert.include(pool.queued(), serving.id)
    assert.deepStrictEqual(pool.yielders(), [serving.id])
    pool.note(serving, "activated")
    assert.notInclude(pool.queued(), serving.id)
    assert.deepStrictEqual(pool.yielders(), [])
  })
})
