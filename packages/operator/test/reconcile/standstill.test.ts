import { assert, it } from "@effect/vitest"
import { Effect, Option, Predicate, Random } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

const stories = Number(process.env.SEATRIAL_STANDSTILL_STORIES ?? 12)
const firstSeed = Number(process.env.SEATRIAL_STANDSTILL_SEED ?? 1)

/**
 * Longer than any step of a story including all drains, and shorter than a boot deadline, which causes a pass anyway.
 */
const patienceMillis = 55_000
const tickMillis = 250
const kinds = ["Pod", "Job", "ModelDeployment", "PodDisruptionBudget", "Node", "HostClass"] as const
const settle = Effect.forEach(Array.from({ length: 40 }), () => Effect.yieldNow, { discard: true })

type Stage = ReturnType<typeof makeStage>

/**
 * Finishes one step of a story with operators that die of their writes, while watches are late. Dies if the step
 * stalls.
 */
const play = Effect.fnUntraced(function* (stage: Stage, name: string, isDone: () => boolean) {
  const lateKinds = new Set<(typeof kinds)[number]>()
  const tellLate = () => {
    for (const kind of lateKinds) stage.kube.tellLate(kind)
    lateKinds.clear()
  }
  let deaths = 0
  const live = Effect.gen(function* () {
    for (let left = yield* Random.nextIntBetween(0, 8); left > 0; left--) {
      const died = yield* stage.operateUntilWrite(yield* Random.nextIntBetween(1, 16), isDone)
      // The lists of the next operator contain the changes that the dead operator's watches had not shown.
      tellLate()
      if (!died) return
      deaths++
    }
    yield* stage.operate(stage.until(isDone))
  })
  const time = Effect.gen(function* () {
    for (let passed = 0; passed < patienceMillis; passed += tickMillis) {
      yield* settle
      const kind = kinds[yield* Random.nextIntBetween(0, kinds.length)] ?? "Pod"
      const draw = yield* Random.next
      if (draw < 0.05 && !lateKinds.has(kind)) {
        stage.kube.beLate(kind)
        lateKinds.add(kind)
      } else if (draw < 0.4) tellLate()
      if (draw > 0.8) stage.finishStarts()
      yield* TestClock.adjust(tickMillis)
    }
    const rows = stage.rows().map(({ id, phase, revision }) => `${id} ${phase} ${revision?.status}`)
    return yield* Effect.die(
      new Error(`${name} stands still after ${deaths} deaths: ${[...rows, ...stage.kube.names("Pod"), ...stage.writes.slice(-8)].join("; ")}`)
    )
  })
  yield* Effect.raceFirst(live, time)
  tellLate()
  return deaths
})

/** An object that someone applies, edits (while it serves or during its first run), and deletes. */
const tell = Effect.gen(function* () {
  const stage = makeStage()
  stage.setQuiet()
  // So that work ends when nothing else triggers a pass.
  stage.setPatience(Effect.flatMap(Random.nextIntBetween(0, 3_000), (millis) => Effect.sleep(millis)))
  stage.setStory("starting")
  stage.forget()
  stage.kube.add("Node", "node-2", { status: { allocatable: { "nvidia.com/gpu": "2" }, conditions: [{ type: "Ready", status: "True" }] } })
  const status = () => {
    const shownStatus = Option.getOrUndefined(stage.kube.find("ModelDeployment", "tiny"))?.status
    return Predicate.isObject(shownStatus) ? shownStatus : {}
  }
  const apply = (generation: number) => {
    const spec = { source: { repo: "seatrial/tiny-chat" }, serving: { hostClass: "local", maxContext: 256 + generation } }
    stage.kube.add("ModelDeployment", "tiny", { metadata: { namespace: "seatrial", generation }, spec })
  }
  const engines = () => stage.kube.names("Pod").filter((pod) => pod.endsWith("-engine-0"))
  const serves = (generation: number) => () =>
    status().observedGeneration === generation && status().phase === "activated" && status().message === "Serves." && engines().length === 1
  let deaths = 0
  apply(1)
  if (yield* Random.nextBoolean) deaths += yield* play(stage, "the first run", serves(1))
  else {
    const phases = ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"] as const
    const phase = phases[yield* Random.nextIntBetween(0, phases.length)]
    deaths += yield* play(stage, `the first run until ${phase}`, () => stage.rows().some((row) => row.phase === phase || row.phase === "activated"))
  }
  apply(2)
  deaths += yield* play(stage, "the edit", serves(2))
  stage.kube.remove("ModelDeployment", "tiny")
  const isGone = () =>
    Option.isNone(stage.kube.find("ModelDeployment", "tiny")) && engines().length === 0 && stage.kube.names("PodDisruptionBudget").length === 0
  deaths += yield* play(stage, "the deletion", isGone)
  return deaths
})

const lost = Effect.map(PrometheusMetrics.format(), (shown) =>
  [...shown.matchAll(/^seatrial_operator_lost_wakeups_total\{.*\} [^0\n].*$/gm)].map(([line]) => line)
)

it.effect(
  `no run stalls, whichever writes kill its operators and however late the watches are: ${stories} stories from ${firstSeed}`,
  () =>
    Effect.gen(function* () {
      const before = yield* lost
      let deaths = 0
      for (let seed = firstSeed; seed < firstSeed + stories; seed++) {
        deaths += yield* tell.pipe(
          Random.withSeed(`${seed}`),
          Effect.catchDefect((defect) => Effect.die(new Error(`seed ${seed}: ${defect instanceof Error ? defect.message : String(defect)}`)))
        )
      }
      assert.isAbove(deaths, stories)
      assert.deepStrictEqual(yield* lost, before)
    }),
  3_600_000
)
