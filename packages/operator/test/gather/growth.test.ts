import { assert, describe, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Schema } from "effect"
import { makePool } from "../../src/gather/capacity/Pool.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import type { PodClass } from "../../src/resources/PodClass.ts"
import { deploymentId, hostClass, observationOf, otherDeployment, podClass, revision } from "../observations.ts"

const active = { revision: { ...revision, status: "active" as const }, replicas: 4 }
const serving = observationOf("activated", {}, active).run
const queued: Run = { ...observationOf("queued").run, id: otherDeployment, engineRun: otherDeployment, createdAt: 5 }

const third = Schema.decodeSync(DeploymentId)("dep_01k3v7m8q2w4x6y8z0a2b4c6e0")

/** A pool with a node of that many GPUs, on which these engines of the serving run hold one each. */
const poolWith = (gpus: number, ordinals: ReadonlyArray<number>) => {
  const pool = makePool()
  pool.ledger.setNode("node-1", {
    metadata: { name: "node-1" },
    status: { allocatable: { "nvidia.com/gpu": String(gpus) }, conditions: [{ type: "Ready", status: "True" }] }
  })
  const place = (name: string) =>
    pool.ledger.setPod(name, {
      metadata: { name, labels: { "seatrial.dev/host-class": hostClass.name, "seatrial.dev/organization": "acme" } },
      spec: { nodeName: "node-1", containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": "1" } } }] }
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

  it("give their GPUs once: what another model gives already counts", () => {
    const { growth, pool } = poolWith(2, [0, 1])
    pool.note(queued, "queued")
    pool.note({ ...serving, id: third }, "activated", false, { fleet: { hasOthers: true, lacksSome: false, yieldingGpus: 1 } })
    assert.strictEqual(growth().yields, 0)
  })

  it("do not give way to a run that waits for its organization's limit", () => {
    const { growth, pool } = poolWith(2, [0, 1])
    pool.note(queued, "waiting")
    assert.strictEqual(growth().yields, 0)
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

  it("are woken when GPUs are freed, and when a run begins to wait", () => {
    const { pool } = poolWith(2, [0, 1])
    pool.note(serving, "activated", false, { fleet: { hasOthers: true, lacksSome: true, yieldingGpus: 0 } })
    assert.include(pool.queued(), serving.id)
    assert.deepStrictEqual(pool.yielders(), [serving.id])
    pool.note(serving, "activated")
    assert.notInclude(pool.queued(), serving.id)
    assert.deepStrictEqual(pool.yielders(), [])
  })
})
