import { assert, describe, it } from "@effect/vitest"
import { isFinished, workingPhases } from "@seatrial/domain"
import { Schema } from "effect"
import { random, World } from "./world.ts"

/** Random worlds of each property. */
const runs = Number(process.env.SEATRIAL_WORLDS ?? 200)

/** A world with random events in any order for a while, including crashes in the middle of passes. */
const storm = (seed: number, steps: number): World => {
  const draw = random(seed)
  const world = new World(draw() < 0.8, draw() < 0.4, draw() < 0.4 ? Math.floor(draw() * 40) : null)
  const faulty = draw() * 0.3
  const cancelled = draw() < 0.2
  for (let step = 0; step < steps; step++) {
    world.now += Math.floor(draw() * 3_000)
    const dice = draw()
    if (dice < faulty) world.fault(draw)
    else if (dice < faulty + 0.2) world.advance(draw() < 0.3 ? world.old : world.next)
    else if (dice < faulty + 0.35) world.finishWork("done")
    else if (dice < faulty + 0.4) world.reach()
    else if (dice < faulty + 0.42) world.finishRequest()
    else if (dice < faulty + 0.44) world.ask()
    else if (cancelled && dice < faulty + 0.442) world.cancel()
    else world.reconcile(draw() < 0.3 ? "old" : "next", draw() < 0.1 ? Math.floor(draw() * 3) : undefined)
  }
  return world
}

/** Lets everything work again until nothing is left to do. Returns the number of passes. */
const settle = (world: World): number => {
  for (const state of [world.old, world.next]) if (state.pod !== null) state.pod = { ...state.pod, nodeDownSince: null }
  // From now on the model always has requests.
  world.hold = null
  // With one GPU, only the run that may take it gets there.
  world.next.free = !world.replace || !world.next.run.serve
  for (let pass = 1; pass <= 200; pass++) {
    const before = JSON.stringify([world.old, world.next])
    const decisions = [world.reconcile("old"), world.reconcile("next")]
    world.finishWork("done")
    world.advance(world.old)
    world.advance(world.next)
    world.reach()
    world.finishRequest()
    const times = decisions.flatMap(({ requeueAt }) => (requeueAt === null ? [] : [requeueAt]))
    if (before === JSON.stringify([world.old, world.next])) {
      if (times.length === 0) return pass
      world.now = Math.max(world.now, Math.min(...times))
    }
  }
  return Number.POSITIVE_INFINITY
}

describe("in random worlds", () => {
  it.prop(
    "phases go forward, each once except for requeues, and a serving revision is never deleted or withdrawn",
    [Schema.Int],
    ([seed]) => assert.deepStrictEqual(storm(seed, 150).violations, []),
    { arbitrary: { runs } }
  )

  it.prop(
    "once faults stop, every run ends, one revision serves, and nothing is left to do",
    [Schema.Int],
    ([seed]) => {
      const world = storm(seed, 60)
      assert.isBelow(settle(world), 200)
      assert.isTrue(isFinished(world.next.run.phase))
      assert.deepStrictEqual(world.violations, [])
      const serving = [world.old, world.next].filter(({ run }) => run.phase === "activated" && run.revision?.status === "active")
      assert.strictEqual(serving.length, 1)
      assert.isTrue(serving[0]?.pod?.ready)
      assert.strictEqual(serving[0]?.run.endpoints.length, 1)
      for (const state of [world.old, world.next]) {
        if (!serving.includes(state)) assert.deepStrictEqual([state.pod, state.fetch._tag, state.run.endpoints, state.budget], [null, "Absent", [], "absent"])
        else assert.strictEqual(state.budget, "intact")
      }
    },
    { arbitrary: { runs } }
  )

  it("without faults a run passes every phase that has something to do, in order", () => {
    const world = new World(true)
    settle(world)
    assert.deepStrictEqual(world.phases, [
      "screening",
      "materializing",
      "provisioning",
      "booting",
      "checking",
      "measuring",
      "benchmarking",
      "activating",
      "activated"
    ])
    assert.strictEqual(world.old.run.revision?.status, "superseded")
    assert.isNull(world.old.pod)
  })

  it("with one GPU to replace, the serving revision stops only after all else was tried, and returns if the trial fails or the run is canceled", () => {
    for (const end of ["activated", "failed", "cancelled"] as const) {
      const world = new World(true, true)
      let gap = false
      for (let step = 0; step < 400 && !(gap && world.next.run.phase === "checking"); step++) {
        for (const which of ["old", "next"] as const) world.reconcile(which)
        if (world.old.run.endpoints.length === 0) {
          gap = true
          assert.isTrue(world.next.run.replaces)
          assert.notInclude(["screening", "materializing", "waiting", "queued"], world.next.run.phase)
        }
        if (world.next.run.phase !== "checking") world.finishWork("done")
        world.advance(world.old)
        world.advance(world.next)
        world.finishRequest()
        world.now += 1_000
      }
      assert.deepStrictEqual([world.next.run.phase, world.old.pod], ["checking", null])
      world.reconcile("next")
      if (end === "failed") world.finishWork("refused")
      if (end === "cancelled") world.cancel()
      settle(world)
      assert.deepStrictEqual([world.next.run.phase, world.violations], [end, []])
      const serving = end === "activated" ? world.next : world.old
      assert.deepStrictEqual([serving.pod?.ready, serving.run.endpoints.length, serving.run.revision?.status], [true, 1, "active"])
    }
  })

  it.prop(
    "if the only faults are outages of a component, every run is activated",
    [Schema.Int],
    ([seed]) => {
      const draw = random(seed)
      const world = new World(draw() < 0.8, draw() < 0.4)
      for (let step = 0; step < 100; step++) {
        world.now += Math.floor(draw() * 300)
        const dice = draw()
        if (dice < 0.05) world.away(Math.floor(draw() * 7_200_000), draw() < 0.5)
        else if (dice < 0.25) world.advance(draw() < 0.3 ? world.old : world.next)
        else if (dice < 0.35) world.finishWork("done")
        else if (dice < 0.4) world.reach()
        else world.reconcile(draw() < 0.3 ? "old" : "next")
      }
      settle(world)
      assert.deepStrictEqual([world.next.run.phase, world.violations], ["activated", []])
    },
    { arbitrary: { runs } }
  )

  for (const phase of workingPhases.filter((each) => each !== "waiting" && each !== "queued")) {
    for (const restarted of [false, true]) {
      it(`after an hour without any component in ${phase}, ${restarted ? "with restarted engines" : "with running engines"}, the run continues`, () => {
        // One step at a time, to reach every moment of the phase.
        const steps: ReadonlyArray<(world: World) => void> = [
          (world) => world.reconcile("next"),
          (world) => world.finishWork("done"),
          (world) => world.advance(world.next),
          (world) => world.reach()
        ]
        let met = 0
        for (let moment = 0; moment < 100; moment++) {
          const world = new World(true)
          for (let step = 0; step < moment; step++) steps[step % steps.length]?.(world)
          if (world.next.run.phase !== phase) continue
          met++
          world.away(3_600_000, restarted)
          settle(world)
          assert.deepStrictEqual([world.phases.at(-1), world.violations], ["activated", []], `after ${moment} steps`)
        }
        assert.isAbove(met, 0)
      })
    }
  }
})
