import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { makeStage } from "./stage.ts"

const hour = 3_600_000

/** A stage whose operator's clock can be set back, while real time goes on. */
const withClock = <A, E>(play: (stage: ReturnType<typeof makeStage>, setBack: () => void) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    yield* TestClock.adjust("10 hours")
    const clock = yield* Clock.Clock
    let behind = 0
    const now = () => clock.currentTimeMillisUnsafe() - behind
    const moved: Clock.Clock = {
      sleep: (duration) => clock.sleep(duration),
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now),
      currentTimeNanosUnsafe: () => BigInt(now()) * 1_000_000n,
      currentTimeNanos: Effect.sync(() => BigInt(now()) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos
    }
    const stage = makeStage()
    const played = Effect.provideService(
      play(stage, () => {
        behind += hour
      }),
      Clock.Clock,
      clock
    )
    return yield* Effect.provideService(stage.operate(played), Clock.Clock, moved)
  })

describe("after the operator's clock was set back by an hour", () => {
  it.effect("a deadline expires within its own length", () =>
    withClock((stage, setBack) =>
      Effect.gen(function* () {
        stage.setStory("starting")
        yield* stage.until(() => stage.row().phase === "booting")
        setBack()
        yield* TestClock.adjust("60 seconds")
        // Any change triggers a pass.
        stage.change((row) => row)
        yield* TestClock.adjust("60 seconds")
        yield* stage.until(() => stage.released() > 0)
        assert.strictEqual(stage.row().failure?.code, "boot_timeout")
      })
    )
  )

  it.effect("no deadline expires before its own length", () =>
    withClock((stage, setBack) =>
      Effect.gen(function* () {
        stage.setStory("gated")
        yield* stage.until(() => stage.kube.names("Pod").length === 1)
        setBack()
        yield* TestClock.adjust("10 minutes")
        stage.kube.setStatus("Pod", enginePodName(stage.row().id), {
          phase: "Running",
          conditions: [{ type: "PodScheduled", status: "True" }],
          containerStatuses: [{ name: "engine", ready: false, restartCount: 0, state: { running: {} } }]
        })
        yield* stage.until(() => stage.row().phase === "booting")
        yield* TestClock.adjust("59 seconds")
        assert.strictEqual(stage.row().phase, "booting")
      })
    )
  )

  it.effect("changes are shown at once", () =>
    withClock((stage, setBack) =>
      Effect.gen(function* () {
        stage.setStory("starting")
        yield* stage.until(() => stage.row().phase === "booting")
        yield* TestClock.adjust("2 seconds")
        yield* stage.until(() => stage.mirrored()?.message === "The engine loads the model.")
        setBack()
        stage.kube.setStatus("Pod", enginePodName(stage.row().id), {
          phase: "Running",
          podIP: "127.0.3.1",
          conditions: [{ type: "PodScheduled", status: "True" }],
          containerStatuses: [{ name: "engine", ready: false, restartCount: 1, state: { running: {} } }]
        })
        yield* TestClock.adjust("2 seconds")
        yield* stage.until(() => String(stage.mirrored()?.message).endsWith("was started again."))
      })
    )
  )
})
