import { DeploymentId } from "@seatrial/domain"
import { Schema } from "effect"
import type { ObservedPod } from "../../../src/observation/ObservedPod.ts"
import { deploymentId, observed, otherDeployment } from "../../observations.ts"
import { random } from "../world.ts"
import { type Engine, FleetWorld, mostReplicas, type Planner } from "./FleetWorld.ts"
import { invariants } from "./faultsOf.ts"
import { WorldGpus } from "./WorldGpus.ts"

const otherIds = ["1", "2", "3"].map((last) => Schema.decodeSync(DeploymentId)(`dep_01k3v7m8q2w4x6y8z0a2b4c6e${last}`))
const minute = 60_000

const changePod = (engine: Engine, change: (pod: ObservedPod) => ObservedPod | null): void => {
  if (engine.pod === null) return
  engine.pod = change(engine.pod)
  engine.requests = engine.pod?.ready === true ? engine.requests : 0
}

/** One disturbance. */
const disturb = (world: FleetWorld, others: ReadonlyArray<FleetWorld>): void => {
  const { draw, now } = world
  const engine = world.engine(Math.floor(draw() * mostReplicas))
  const resize = () => {
    const replicas = 1 + Math.floor(draw() * mostReplicas)
    for (const each of others) each.replicas = replicas
  }
  const disturbances: ReadonlyArray<() => void> = [
    ...[resize, resize],
    () => (world.gpus.count = Math.max(world.gpus.count - world.gpus.free, 1 + Math.floor(draw() * 6))),
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
    () => (world.clock.now += Math.floor(draw() * 3 * minute)),
    () => (world.clock.now += Math.floor(draw() * 70 * minute)),
    () => {
      const disabled = !world.disabled && draw() < 0.3
      for (const each of others) each.disabled = disabled
    }
  ]
  disturbances[Math.floor(draw() * disturbances.length)]?.()
  world.showPods()
}

/** The world goes on by one event. */
const step = (world: FleetWorld): void => {
  const { draw } = world
  world.clock.now += Math.floor(draw() * 3_000)
  const dice = draw()
  if (dice < 0.35) {
    world.reconcile(draw() < 0.1 ? Math.floor(draw() * 3) : undefined)
    // All of them, as if the hub were unreachable, or one.
    const failing = draw() < 0.5 ? world.engines.length : 1
    if (draw() < world.failing) for (let count = 0; count < failing; count++) world.finishWork("failed")
  } else if (dice < 0.6) world.advance(world.engine(Math.floor(draw() * mostReplicas)))
  else if (dice < 0.68) world.finishWork(draw() < 0.9 ? "same" : "differs")
  else if (dice < 0.74) world.reach()
  else if (dice < 0.84) world.ask()
  else if (dice < 0.9) for (const engine of world.engines) engine.requests = Math.max(0, engine.requests - 1)
  else if (dice < 0.94) world.gpus.place()
  else world.gpus.grant()
}

/** Everything works from now on. Returns whether the worlds came to rest. */
const settle = (fleets: ReadonlyArray<FleetWorld>): boolean => {
  const [world] = fleets
  if (world === undefined) return true
  const { clock, gpus } = world
  let still = 0
  for (const fleet of fleets) fleet.isCalm = true
  for (const { engines } of fleets) for (const engine of engines) changePod(engine, (pod) => ({ ...pod, nodeDownSince: null }))
  for (let pass = 0; pass < 600 && still < 12; pass++) {
    const before = fleets.map((fleet) => fleet.state()).join()
    const times = fleets.flatMap((fleet) => calmly(fleet) ?? [])
    gpus.grant()
    gpus.place()
    clock.now += 1_000
    still = before === fleets.map((fleet) => fleet.state()).join() ? still + 1 : 0
    if (still > 0 && times.length > 0) clock.now = Math.max(clock.now, Math.min(...times))
  }
  for (const fleet of fleets) fleet.isCalm = false
  return still >= 12
}

/** One undisturbed pass, after which all goes on. Returns when the operator looks again. */
const calmly = (fleet: FleetWorld): number | null => {
  const { requeueAt } = fleet.reconcile()
  fleet.finishWork("same")
  for (const engine of fleet.engines) {
    fleet.advance(engine)
    engine.requests = 0
  }
  fleet.reach()
  fleet.ask()
  for (const engine of fleet.engines) engine.requests = 0
  return requeueAt
}

/** What must hold in a world at rest. */
const checkRest = (world: FleetWorld, isAtRest: boolean): void => {
  const placed = world.gpus.othersIn("claimed", "placed")
  const isQueued = world.gpus.othersIn("queued") > 0
  const wanted = world.mustServe(world.observe()) ? Math.min(world.replicas, Math.max(0, world.gpus.count - placed)) : 0
  const pods = world.engines.filter(({ pod }) => pod?.scheduled === true).length
  const old = world.sibling?.engines.filter(({ pod }) => pod !== null).length ?? 0
  if (isQueued && pods + old > world.kept) world.faults.add(invariants.queue)
  // Without a free GPU the earlier revision goes on, with the engines that the newer one lacks.
  const isStuck = old > 0 && world.gpus.unclaimed <= 0 && pods + old === world.good && world.good <= world.replicas
  const isReached = isQueued ? world.good <= world.kept : isStuck || (old === 0 && world.good === wanted && pods === wanted)
  if (!isAtRest || !isReached) world.faults.add(invariants.wanted)
}

const storm = (fleets: ReadonlyArray<FleetWorld>, draw: () => number): void => {
  const faulty = draw() * 0.25
  const failing = draw() < 0.3 ? 0.8 : 0.1
  for (const fleet of fleets) fleet.failing = failing
  const steps = fleets.length * (20 + Math.floor(draw() * 80))
  for (let count = 0; count < steps; count++) {
    const fleet = fleets[Math.floor(draw() * fleets.length)]
    if (fleet === undefined) continue
    if (draw() < faulty) disturb(fleet, fleets)
    else step(fleet)
  }
}

/** A model with an autoscaler, or with a fixed number of engines. */
const leastOf = (draw: () => number) => (draw() < 0.3 ? {} : { minReplicas: Math.floor(draw() * (mostReplicas + 1)) })

/** Plays the world of a seed, and returns the invariants that the planner broke. */
export const playWorld = (planner: Planner, seed: number): ReadonlyArray<string> => {
  const draw = random(seed)
  const replicas = 1 + Math.floor(draw() * mostReplicas)
  const gpus = new WorldGpus(1 + Math.floor(draw() * 6))
  const hold = draw() < 0.2 ? 60 : null
  const world = new FleetWorld({ planner, draw, replicas, gpus, hold, ...leastOf(draw) })
  if (draw() < 0.5) settle([world])
  for (const id of otherIds) if (draw() < 0.3) gpus.join(id, world.now)
  storm([world], draw)
  checkRest(world, settle([world]))
  return [...world.faults]
}

/** The same for a model that moves to a new revision. Its first engine serves, and further ones are missing. */
export const playMove = (planner: Planner, seed: number): ReadonlyArray<string> => {
  const draw = random(seed)
  const replicas = 2 + Math.floor(draw() * (mostReplicas - 1))
  const gpus = new WorldGpus(replicas + Math.floor(draw() * 4))
  const least = leastOf(draw)
  const old = new FleetWorld({ planner, draw, replicas, gpus, hold: null, ...least })
  settle([old])
  const next = new FleetWorld({ planner, draw, replicas, gpus, hold: null, id: otherDeployment, ...least })
  next.clock = old.clock
  next.faults = old.faults
  old.settings = { maxSurge: Math.floor(draw() * 3), maxUnavailable: Math.floor(draw() * 2) }
  if (old.settings.maxSurge === 0) old.settings = { ...old.settings, maxUnavailable: 1 }
  next.settings = old.settings
  gpus.count++
  next.replicas = 1
  settle([next])
  next.replicas = replicas
  gpus.count -= draw() < 0.3 ? Math.min(1, gpus.free) : 0
  Object.assign(old, { sibling: next, isSuperseded: true })
  next.sibling = old
  gpus.pool.note({ ...observed.run, id: deploymentId, revision: null }, "failed")
  storm([old, next], draw)
  checkRest(next, settle([old, next]))
  return [...next.faults]
}
