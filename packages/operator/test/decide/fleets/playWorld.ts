import { DeploymentId } from "@seatrial/domain"
import { Schema } from "effect"
import type { ObservedPod } from "../../../src/observation/ObservedPod.ts"
import { random } from "../world.ts"
import { type Engine, FleetWorld, type Planner } from "./FleetWorld.ts"
import { invariants } from "./faultsOf.ts"

const otherIds = ["1", "2", "3"].map((last) => Schema.decodeSync(DeploymentId)(`dep_01k3v7m8q2w4x6y8z0a2b4c6e${last}`))
const minute = 60_000
const mostReplicas = 4

const changePod = (engine: Engine, change: (pod: ObservedPod) => ObservedPod | null): void => {
  if (engine.pod === null) return
  engine.pod = change(engine.pod)
  engine.requests = engine.pod?.ready === true ? engine.requests : 0
}

/** One disturbance. */
const disturb = (world: FleetWorld): void => {
  const { draw, now } = world
  const engine = world.engine(Math.floor(draw() * mostReplicas))
  const disturbances: ReadonlyArray<() => void> = [
    () => (world.replicas = 1 + Math.floor(draw() * mostReplicas)),
    () => (world.replicas = 1 + Math.floor(draw() * mostReplicas)),
    () => (world.gpus.count = Math.max(world.held + world.gpus.othersIn("placed"), 1 + Math.floor(draw() * 6))),
    () => {
      for (const id of otherIds.slice(0, Math.ceil(draw() * 3))) world.gpus.join(id, now)
    },
    () => world.gpus.endOne(),
    () => changePod(engine, (pod) => ({ ...pod, deleting: true, ready: false })),
    () => changePod(engine, () => null),
    () => changePod(engine, (pod) => ({ ...pod, lost: "Evicted", ready: false })),
    () => changePod(engine, (pod) => ({ ...pod, ready: false, readyChangedAt: now })),
    () => changePod(engine, (pod) => (pod.started ? { ...pod, ready: false, restarts: pod.restarts + 1, startedAt: now, readyChangedAt: now } : pod)),
    () => changePod(engine, (pod) => ({ ...pod, nodeDownSince: pod.nodeDownSince === null && pod.scheduled ? now : null })),
    () => world.replaceOperator(),
    () => (world.now += Math.floor(draw() * 3 * minute)),
    () => (world.now += Math.floor(draw() * 70 * minute)),
    () => (world.disabled = !world.disabled && draw() < 0.3)
  ]
  disturbances[Math.floor(draw() * disturbances.length)]?.()
  world.showPods()
}

/** The world goes on by one event. */
const step = (world: FleetWorld): void => {
  const { draw } = world
  world.now += Math.floor(draw() * 3_000)
  const dice = draw()
  if (dice < 0.35) world.reconcile(draw() < 0.1 ? Math.floor(draw() * 3) : undefined)
  else if (dice < 0.6) world.advance(world.engine(Math.floor(draw() * mostReplicas)))
  else if (dice < 0.68) world.finishWork(draw() < 0.9 ? "same" : "differs")
  else if (dice < 0.74) world.reach()
  else if (dice < 0.84) world.ask()
  else if (dice < 0.9) for (const engine of world.engines) engine.requests = Math.max(0, engine.requests - 1)
  else if (dice < 0.94) world.gpus.place(world.held, world.promised)
  else world.gpus.grant()
}

/** Everything works from now on. Returns whether the world came to rest. */
const settle = (world: FleetWorld): boolean => {
  let still = 0
  world.isCalm = true
  for (const engine of world.engines) changePod(engine, (pod) => ({ ...pod, nodeDownSince: null }))
  for (let pass = 0; pass < 400 && still < 3; pass++) {
    const before = world.state()
    const { requeueAt } = world.reconcile()
    world.finishWork("same")
    for (const engine of world.engines) {
      world.advance(engine)
      engine.requests = 0
    }
    world.reach()
    world.ask()
    for (const engine of world.engines) engine.requests = 0
    world.gpus.grant()
    world.gpus.place(world.held, world.promised)
    world.now += 1_000
    still = before === world.state() ? still + 1 : 0
    if (still > 0 && requeueAt !== null) world.now = Math.max(world.now, requeueAt)
  }
  world.isCalm = false
  return still >= 3
}

/** What must hold in a world at rest. */
const checkRest = (world: FleetWorld, isAtRest: boolean): void => {
  const good = world.engines.filter((engine) => world.isGood(engine)).length
  const placed = world.gpus.othersIn("claimed", "placed")
  const isQueued = world.gpus.othersIn("queued") > 0
  const observation = world.observe()
  const wanted = world.mustServe(observation) ? Math.min(world.replicas, Math.max(0, world.gpus.count - placed)) : 0
  const pods = world.engines.filter(({ pod }) => pod?.scheduled === true).length
  if (isQueued && pods > 1) world.faults.add(invariants.queue)
  const isReached = isQueued ? good <= 1 : good === wanted && pods === wanted
  if (!isAtRest || !isReached) world.faults.add(invariants.wanted)
}

/** Plays the world of a seed, and returns the invariants that the planner broke. */
export const playWorld = (planner: Planner, seed: number): ReadonlyArray<string> => {
  const draw = random(seed)
  const replicas = 1 + Math.floor(draw() * mostReplicas)
  const world = new FleetWorld({ planner, draw, replicas, gpus: 1 + Math.floor(draw() * 6), hold: draw() < 0.2 ? 60 : null })
  const faulty = draw() * 0.25
  if (draw() < 0.5) settle(world)
  const steps = 20 + Math.floor(draw() * 80)
  for (let count = 0; count < steps; count++)
    if (draw() < faulty) disturb(world)
    else step(world)
  checkRest(world, settle(world))
  return [...world.faults]
}
