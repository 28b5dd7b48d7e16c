import { type DeploymentId, ModelId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Schema } from "effect"
import { makePool } from "../../../src/gather/capacity/Pool.ts"
import { enginePodName } from "../../../src/resources/objectNames.ts"
import { hostClass, podClass, revision, run } from "../../observations.ts"

const otherModel = Schema.decodeSync(ModelId)("mdl_01k3v7m8q2w4x6y8z0a2b4c6e0")

/** A run of another model that needs one GPU. */
interface OtherRun {
  readonly run: Run
  state: "queued" | "claimed" | "placed"
}

/** The GPUs of one node, and the other runs that need some. The operator's own pool grants them. */
export class WorldGpus {
  pool = makePool()
  others: ReadonlyArray<OtherRun> = []
  private total = 0
  /** The pods as the ledger shows them. */
  private readonly shown = new Map<string, string>()

  constructor(count: number) {
    this.count = count
  }

  get count(): number {
    return this.total
  }

  set count(count: number) {
    this.total = count
    const status = { allocatable: { "nvidia.com/gpu": String(count) }, conditions: [{ type: "Ready", status: "True" }] }
    this.pool.ledger.setNode("node-1", { metadata: { name: "node-1" }, status })
  }

  /** How many other runs are in one of these states. */
  othersIn(...states: ReadonlyArray<OtherRun["state"]>): number {
    return this.others.filter(({ state }) => states.includes(state)).length
  }

  private shownAs(...states: ReadonlyArray<string>): number {
    return [...this.shown.values()].filter((state) => states.includes(state)).length
  }

  /** GPUs that no pod holds. */
  get free(): number {
    return this.count - this.shownAs("placed")
  }

  /** GPUs that nothing holds or was promised. */
  get unclaimed(): number {
    return this.count - this.shownAs("placed", "waiting") - this.othersIn("claimed")
  }

  /** The ledger shows a pod. */
  show(name: string, isPresent: boolean, isPlaced: boolean): void {
    const shown = !isPresent ? "absent" : isPlaced ? "placed" : "waiting"
    if ((this.shown.get(name) ?? "absent") === shown) return
    this.shown.set(name, shown)
    const labels = { "seatrial.dev/host-class": hostClass.name, "seatrial.dev/organization": run.orgSlug }
    const containers = [{ name: "engine", resources: { limits: { "nvidia.com/gpu": "1" } } }]
    const spec = { ...(isPlaced ? { nodeName: "node-1" } : {}), containers }
    this.pool.ledger.setPod(name, isPresent ? { metadata: { name, labels }, spec } : undefined)
  }

  /** Another run joins the queue. */
  join(id: DeploymentId, createdAt: number): void {
    if (this.others.some((other) => other.run.id === id)) return
    const joined: Run = { ...run, id, engineRun: id, modelId: otherModel, phase: "queued", createdAt, revision }
    this.others = [...this.others, { run: joined, state: "queued" }]
    this.pool.note(joined, "queued")
  }

  /** The oldest other run ends. */
  endOne(): void {
    const [first, ...others] = this.others
    if (first === undefined) return
    this.others = others
    this.pool.note(first.run, "failed")
    this.show(enginePodName(first.run.id), false, false)
  }

  /** Queued runs that may have GPUs get some. */
  grant(): void {
    for (const other of this.others) {
      if (other.state !== "queued") continue
      const { ahead, freeSlots } = this.pool.view({ run: other.run, podClass, classes: [podClass], reservations: [] })
      if (freeSlots <= ahead) continue
      other.state = "claimed"
      this.pool.note(other.run, "provisioning")
    }
  }

  /** The pods of granted runs get their GPUs. A run whose GPUs are gone returns to the queue. */
  place(): void {
    for (const other of this.others) {
      if (other.state !== "claimed") continue
      if (this.free > 0) other.state = "placed"
      else if (this.unclaimed < 0) {
        other.state = "queued"
        this.pool.note(other.run, "queued")
      }
      this.show(enginePodName(other.run.id), other.state === "placed", true)
    }
  }

  /** Another operator fills its own pool. */
  forget(): void {
    this.pool = makePool(this.pool.ledger)
    for (const { run, state } of this.others) this.pool.note(run, state === "queued" ? "queued" : "provisioning")
  }
}
