import { assert, describe, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Effect, Schema } from "effect"
import { openClasses } from "../../src/decide/placement.ts"
import { queued } from "../../src/decide/queues.ts"
import { makePool } from "../../src/gather/capacity/Pool.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { classNamed, planOn } from "../hostClassOptions.ts"
import { deploymentId, observationOf, revision, run } from "../observations.ts"

const Name = Schema.Literals(["a", "b", "c"])
type Name = typeof Name.Type
const Step = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("run"),
    classes: Schema.Array(Name).check(Schema.isBetweenLength(1, 3)).check(Schema.isUnique()),
    org: Schema.Literals(["acme", "beta"])
  }),
  Schema.Struct({ kind: Schema.Literal("end"), which: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })) })
])
const gpusOf = { a: 1, b: 2, c: 1 } as const satisfies Record<Name, number>
const slots = { a: 2, b: 1, c: 1 } as const satisfies Record<Name, number>
const names = Name.literals
const classes = names.map((name) => classNamed(name, gpusOf[name]))

/** Runs that queue for host classes, each on its own nodes, driven as the operator drives them. */
const makeWorld = (gpuLimit: number | null) => {
  const pool = makePool()
  for (const name of names) {
    pool.ledger.setNode(`node-${name}`, {
      metadata: { name: `node-${name}`, labels: { class: name } },
      status: { allocatable: { "nvidia.com/gpu": String(slots[name] * gpusOf[name]) }, conditions: [{ type: "Ready", status: "True" }] }
    })
  }
  const waiting = new Map<DeploymentId, { readonly run: Run; readonly classes: ReadonlyArray<Name> }>()
  const serving: Array<{ readonly run: Run; readonly name: string }> = []
  let count = 0
  const pass = (id: DeploymentId): void => {
    const entry = waiting.get(id)
    if (entry === undefined) return
    const options =
      entry.run.placements.length === 0 ? [] : entry.classes.map((name) => ({ plan: planOn(name, gpusOf[name]), podClass: classNamed(name, gpusOf[name]) }))
    const own = entry.classes[0] ?? "a"
    const question = { run: entry.run, podClass: classNamed(own, gpusOf[own]), classes, options, reservations: [] }
    const observation = { ...observationOf("queued"), run: entry.run, podClass: question.podClass, ...pool.view(question) }
    const entered = queued(observation, 0).actions.find((action) => action._tag === "Enter")
    const to = entered?._tag === "Enter" ? entered : null
    pool.note(entry.run, to?.to ?? "queued", false, { plan: to?.plan, open: openClasses(observation) })
    if (to === null) return
    const name = (to.plan ?? entry.run.revision)?.settings.host_class ?? ""
    // No older run that competes for the class is overtaken.
    for (const other of waiting.values())
      assert.isFalse(
        gpuLimit === null && other.run.createdAt < entry.run.createdAt && other.classes.some((each) => each === name),
        `${name} went to a younger run`
      )
    waiting.delete(id)
    serving.push({ run: entry.run, name })
    const amount = String(gpusOf[Schema.decodeUnknownSync(Name)(name)])
    pool.ledger.setPod(enginePodName(id), {
      metadata: { name: enginePodName(id), labels: { "seatrial.dev/host-class": name, "seatrial.dev/organization": entry.run.orgSlug } },
      spec: { nodeName: `node-${name}`, containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": amount } } }] }
    })
  }
  return {
    waiting,
    serving,
    add: (list: ReadonlyArray<Name>, orgSlug: string): void => {
      count++
      const id = Schema.decodeUnknownSync(DeploymentId)(`${deploymentId.slice(0, -2)}${String(count).padStart(2, "0")}`)
      const [first = "a"] = list
      const placements = list.length === 1 ? [] : list.map((name) => planOn(name, gpusOf[name]))
      const { estimate, settings } = planOn(first, gpusOf[first])
      const newRun: Run = {
        ...run,
        id,
        engineRun: id,
        orgSlug,
        phase: "queued",
        createdAt: count,
        gpuLimit,
        placements,
        revision: { ...revision, settings, estimate }
      }
      waiting.set(id, { run: newRun, classes: list })
      pass(id)
    },
    end: (which: number): void => {
      const [ended] = serving.splice(which % Math.max(1, serving.length), 1)
      if (ended === undefined) return
      Effect.runSync(pool.forget(ended.run.id))
      pool.ledger.setPod(enginePodName(ended.run.id), undefined)
    },
    /** Repeats the passes over the runs that may continue until none can. */
    settle: (): void => {
      for (let before = -1; before !== waiting.size; ) {
        before = waiting.size
        for (const id of pool.queued()) pass(id)
      }
    }
  }
}

describe("queues of several host classes", () => {
  it.prop(
    "never take more GPUs than a class has, leave none free that a run could take, and overtake no older run",
    [Schema.Array(Step).check(Schema.isMaxLength(30))],
    ([steps]) => {
      const world = makeWorld(null)
      for (const step of steps) {
        if (step.kind === "run") world.add(step.classes, step.org)
        else world.end(step.which)
        world.settle()
        for (const name of names) {
          const used = world.serving.filter((each) => each.name === name).length
          assert.isAtMost(used, slots[name])
          const wanted = [...world.waiting.values()].some(({ classes }) => classes.includes(name))
          if (wanted) assert.strictEqual(used, slots[name], `${name} has room for a run that waits`)
        }
      }
    }
  )

  it.prop("keep every organization within its limit", [Schema.Array(Step).check(Schema.isMaxLength(30))], ([steps]) => {
    const world = makeWorld(3)
    for (const step of steps) {
      // A queued run of one class was counted before it got here, in `waiting`.
      const counted = [...world.serving.map(({ name, run }) => ({ org: run.orgSlug, gpus: gpusOf[Schema.decodeUnknownSync(Name)(name)] }))]
      const queuedGpus = [...world.waiting.values()].map(({ classes, run }) => ({ org: run.orgSlug, gpus: Math.min(...classes.map((name) => gpusOf[name])) }))
      const held = (org: string) => [...counted, ...queuedGpus].reduce((sum, each) => sum + (each.org === org ? each.gpus : 0), 0)
      if (step.kind === "end") world.end(step.which)
      else if (held(step.org) + Math.min(...step.classes.map((name) => gpusOf[name])) <= 3) world.add(step.classes, step.org)
      world.settle()
      for (const org of ["acme", "beta"]) {
        const gpus = world.serving.reduce((sum, { name, run }) => sum + (run.orgSlug === org ? gpusOf[Schema.decodeUnknownSync(Name)(name)] : 0), 0)
        assert.isAtMost(gpus, 3)
      }
    }
  })

  it("do not starve a run of one class behind runs of several", () => {
    const world = makeWorld(null)
    for (const name of names) for (let index = 0; index < slots[name]; index++) world.add([name], "acme")
    world.add(["b", "c"], "acme")
    world.add(["c"], "beta")
    for (let index = 0; index < 5; index++) world.add(["c", "b"], "acme")
    world.end(3)
    world.settle()
    // The run that went first has ended too. Later runs of several classes wait behind the run of one.
    world.end(3)
    world.settle()
    assert.deepStrictEqual(world.serving.map(({ name, run }) => `${run.orgSlug} ${name}`).slice(-1), ["beta c"])
  })
})
