import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Logger, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName, fetchJobName, madeFromAnnotation } from "../../src/resources/objectNames.ts"
import { revision } from "../observations.ts"
import { makeStage } from "./stage.ts"

const allPhases = ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating", "activated"]

type Stage = ReturnType<typeof makeStage>
const isShown = (stage: Stage, phase: string) => () => {
  const status = stage.mirrored()
  return stage.row().phase === phase && status?.phase === phase
}
const phasesOf = (stage: Stage) => stage.row().history.map(({ phase }) => phase)

describe("a run", () => {
  it.effect("passes every phase in order, is shown in its custom resource, and has one event for each phase", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => isShown(stage, "activated")() && stage.mirrored()?.message === "Serves."))
      assert.deepStrictEqual(phasesOf(stage), allPhases)
      assert.strictEqual(stage.kube.names("Event").length, allPhases.length)
      assert.deepStrictEqual(stage.kube.names("Job"), [])
      assert.deepStrictEqual(stage.kube.names("Pod").length, 1)
      assert.deepStrictEqual(stage.published, [1])
      assert.include(stage.classes, "local")
      const conditions = stage.mirrored()?.conditions
      const statuses = Array.isArray(conditions) ? conditions.map((one) => (Predicate.isObject(one) ? `${one.type} ${one.status}` : "")) : []
      assert.deepStrictEqual(statuses, [
        "Accepted True",
        "Ready True",
        "Available True",
        "ScalingLimited False",
        "Progressing True",
        "Stalled False",
        "Activated True",
        "Failed False"
      ])
    })
  })

  for (const [status, reason] of [
    [403, "Denied"],
    [422, "Invalid"],
    [404, "NotFound"]
  ] as const) {
    it.effect(`is shown in its custom resource even if its events are refused with ${status}, which is logged`, () => {
      const stage = makeStage()
      stage.kube.refuse("Event", status, reason)
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => lines.push(String(message)))
      return Effect.gen(function* () {
        yield* stage.operate(stage.until(() => isShown(stage, "activated")() && stage.mirrored()?.message === "Serves."))
        assert.deepStrictEqual(stage.kube.names("Event"), [])
        assert.isTrue(lines.some((line) => line.includes("refused the event Activated")))
      }).pipe(Effect.provide(Logger.layer([logger])))
    })
  }

  it.effect("whose download uses an old address of the hub downloads from the new one", () => {
    const stage = makeStage()
    const { id } = stage.row()
    stage.kube.add("Job", fetchJobName(id), { metadata: { namespace: "seatrial", annotations: { [madeFromAnnotation]: "another address" } } })
    stage.change((row) => ({ ...row, phase: "materializing", revision }))
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => stage.row().phase !== "materializing"))
      assert.strictEqual(stage.row().phase, "provisioning")
      assert.include(stage.writes.join(), "remove")
    })
  })

  it.effect("whose engine's pod name is taken says so, and continues once that pod is gone", () => {
    const stage = makeStage()
    const name = enginePodName(stage.row().id)
    stage.kube.add("Pod", name, { metadata: { namespace: "seatrial" }, spec: { containers: [{ name: "other" }] } })
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.row().phase === "provisioning")
          yield* TestClock.adjust("15 seconds")
          assert.include(String(stage.mirrored()?.message), `A pod ${name} that does not belong to Seatrial already exists.`)
          stage.kube.drop("Pod", name)
          yield* TestClock.adjust("15 seconds")
          yield* stage.until(() => stage.row().phase === "activated")
        })
      )
    })
  })

  it.effect("gets its disruption budget although a concurrent change of a quota refuses it at first", () => {
    const stage = makeStage()
    stage.kube.refuse("PodDisruptionBudget", 409, "Conflict", 2)
    return Effect.gen(function* () {
      // Less than the time for which an unobserved budget is trusted.
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.row().phase === "activated")
          for (let step = 0; step < 8 && stage.kube.names("PodDisruptionBudget").length === 0; step++) yield* TestClock.adjust("1 second")
          assert.lengthOf(stage.kube.names("PodDisruptionBudget"), 1)
        })
      )
    })
  })

  it.effect("that changes quickly is shown in few writes, with all its phases", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => stage.mirrored()?.message === "Serves."))
      const shown = stage.writes.filter((write) => write.startsWith("status ModelDeployment"))
      // When it begins, when its object is applied again because no watch has shown it yet, and when it serves.
      assert.isAtMost(shown.length, 3)
      const { phases } = stage.mirrored() ?? {}
      assert.strictEqual(Array.isArray(phases) ? phases.length : 0, allPhases.length)
      // For each phase the pass that enters it, and at most one more: the operator's own writes trigger none. And one
      // that records the image.
      assert.isAtMost(stage.reads.length, 2 * allPhases.length + 1)
    })
  })

  it.effect("that is settled is not written again, whatever the watches report", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      const settled = stage.until(() => stage.mirrored()?.message === "Serves.")
      yield* stage.operate(settled)
      const before = stage.writes.length
      // A new operator makes a pass over everything again.
      yield* stage.operate(
        Effect.andThen(
          settled,
          Effect.forEach(Array.from({ length: 200 }), () => Effect.yieldNow)
        )
      )
      assert.strictEqual(stage.writes.length, before)
    })
  })

  it.effect("with a failed GPU says so by an event and in its object while it continues to serve, with the message of its node", () => {
    const stage = makeStage()
    const causeOf = () => {
      const cause = stage.mirrored()?.cause
      return Predicate.isObject(cause) ? cause : {}
    }
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.mirrored()?.message === "Serves.")
        const [engine = ""] = stage.kube.names("Pod")
        const allocatable = { "nvidia.com/gpu": "1" }
        const xid = { type: "XIDError", status: "True", message: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus." }
        stage.kube.add("Node", "node-1", { status: { allocatable, conditions: [{ type: "Ready", status: "True" }, xid] } })
        // The engine still responds: the GPU may be another pod's.
        yield* Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
        assert.deepStrictEqual(causeOf(), {})
        const unready = { type: "Ready", status: "False" }
        const container = { name: "engine", ready: false, restartCount: 0, started: true, state: { running: {} } }
        stage.kube.setStatus("Pod", engine, { phase: "Running", podIP: "127.0.3.1", conditions: [unready], containerStatuses: [container] })
        yield* stage.until(() => causeOf().reason === "GpuFault")
        assert.deepInclude(causeOf(), { object: "Node/node-1", message: `XIDError: ${xid.message}` })
        const eventNames = stage.kube.names("Event").filter((name) => name.includes(".gpufault."))
        assert.strictEqual(eventNames.length, 1)
        assert.deepInclude(Option.getOrThrow(stage.kube.find("Event", eventNames[0] ?? "")), { type: "Warning", reason: "GpuFault" })
      })
    )
  })

  it.effect("that is finished is deleted from the cluster after its time, also by a later operator, but its record stays", () =>
    Effect.gen(function* () {
      const stage = makeStage()
      stage.setStory("starting")
      yield* stage.operate(stage.until(() => stage.row().phase === "booting"))
      stage.cancel(0)
      yield* stage.operate(stage.until(() => stage.released() > 0))
      yield* TestClock.adjust(Duration.minutes(30 * 24 * 60 - 1))
      yield* stage.operate(
        Effect.gen(function* () {
          yield* Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
          assert.deepStrictEqual(stage.kube.names("ModelDeployment").length, 1)
          const before = stage.writes.length
          yield* TestClock.adjust("2 minutes")
          yield* stage.until(() => stage.kube.names("ModelDeployment").length === 0)
          yield* Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
          // Its deletion triggers no pass.
          assert.deepStrictEqual(
            stage.writes.slice(before).filter((write) => write !== "status HostClass local" && !write.startsWith("release")),
            [`remove ModelDeployment ${stage.row().id.replace("_", "-")}`]
          )
        })
      )
      assert.strictEqual(stage.row().phase, "cancelled")
    })
  )

  it.effect("that serves keeps its object and its engine forever", () => {
    const stage = makeStage()
    const serves = stage.until(() => stage.mirrored()?.message === "Serves.")
    return Effect.gen(function* () {
      yield* stage.operate(serves)
      const before = stage.writes.length
      yield* TestClock.adjust("365 days")
      yield* stage.operate(
        Effect.andThen(
          serves,
          Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
        )
      )
      assert.deepStrictEqual([stage.kube.names("ModelDeployment").length, stage.kube.names("Pod").length], [1, 1])
      assert.strictEqual(stage.writes.length, before)
    })
  })

  it.effect("ends the same after a crash behind any single write", () =>
    Effect.gen(function* () {
      let survived = 0
      for (let count = 1; ; count++) {
        const stage = makeStage(Option.some("hf_token"))
        const done = () => stage.mirrored()?.message === "Serves."
        const died = yield* stage.operateUntilWrite(count, done)
        yield* stage.operate(stage.until(done))
        assert.deepStrictEqual(phasesOf(stage), allPhases, `after write ${count}`)
        assert.deepStrictEqual([stage.kube.names("Job"), stage.kube.names("Secret")], [[], []], `after write ${count}`)
        assert.strictEqual(stage.kube.names("Pod").length, 1)
        assert.strictEqual(stage.kube.names("Event").length, allPhases.length, `after write ${count}`)
        if (!died) break
        survived++
      }
      assert.isAtLeast(survived, 30)
    })
  )

  it.effect("that is canceled leaves nothing but its record, also after a crash during the cleanup", () =>
    Effect.gen(function* () {
      for (let count = 1; count <= 8; count++) {
        const stage = makeStage(Option.some("hf_token"))
        stage.setStory("starting")
        yield* stage.operate(stage.until(() => stage.row().phase === "booting" && stage.kube.names("Pod").length === 1))
        stage.cancel(1)
        yield* stage.operateUntilWrite(count, () => stage.released() > 0)
        yield* stage.operate(stage.until(() => stage.released() > 0))
        assert.isTrue(isShown(stage, "cancelled")())
        assert.deepStrictEqual([stage.kube.names("Pod"), stage.kube.names("Job"), stage.kube.names("Secret")], [[], [], []])
        assert.strictEqual(phasesOf(stage).at(-1), "cancelled")
      }
    })
  )

  it.effect("that is canceled while it waits, with only its object in the cluster, is released too", () => {
    const stage = makeStage()
    stage.change((row) => ({ ...row, gpuLimit: 0 }))
    const settled = Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow, { discard: true })
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "waiting")
        yield* settled
        yield* TestClock.adjust("2 seconds")
        yield* stage.until(() => String(stage.mirrored()?.message).startsWith("The deployment waits for an administrator"))
        stage.cancel(0)
        yield* stage.until(() => stage.released() > 0)
        assert.isTrue(isShown(stage, "cancelled")())
      })
    )
  })

  it.effect("passes its hub token to the download through a Secret, and to nothing else", () => {
    const stage = makeStage(Option.some("hf_secret_token"))
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => stage.mirrored()?.message === "Serves."))
      // It exists before the Job and is gone when the Job is done; the second time with the Job itself, before anything
      // else runs.
      const order = stage.writes.filter((write) => /^\w+ (Secret|Job|Pod)\b/.test(write)).map((write) => write.split(" ").slice(0, 2).join(" "))
      assert.deepStrictEqual(order.slice(0, 6), ["create Secret", "apply Job", "remove Secret", "remove Secret", "remove Job", "create Pod"])
      for (const kind of ["Pod", "ModelDeployment", "Event"]) {
        for (const name of stage.kube.names(kind)) assert.notInclude(JSON.stringify(Option.getOrNull(stage.kube.find(kind, name))), "hf_secret_token")
      }
    })
  })

  it.effect("fails at its boot deadline, although no event reports it", () => {
    const stage = makeStage()
    stage.setStory("starting")
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.row().phase === "booting")
          yield* TestClock.adjust("59 seconds")
          assert.strictEqual(stage.row().phase, "booting")
          yield* TestClock.adjust("1 second")
          yield* stage.until(() => stage.released() > 0)
        })
      )
      assert.strictEqual(stage.row().failure?.code, "boot_timeout")
      assert.deepStrictEqual(stage.kube.names("Pod"), [])
    })
  })

  it.effect("continues within ten minutes if the only event that it waits for is lost", () => {
    const stage = makeStage()
    // Its checks never end, and no pass requests a time.
    stage.setPatience(Effect.never)
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.row().phase === "screening" && stage.worked.length > 0)
          // Until its status is written, which triggers passes too.
          yield* TestClock.adjust("1 minute")
          stage.cancelUnheard(0)
          yield* TestClock.adjust("8 minutes")
          assert.strictEqual(stage.released(), 0)
          yield* TestClock.adjust("2 minutes")
          yield* stage.until(() => stage.released() > 0)
        })
      )
      assert.strictEqual(stage.row().phase, "cancelled")
    })
  })

  it.effect("that failed has the end of its engine's log in the operator's log, without secrets", () => {
    const stage = makeStage()
    stage.setStory("starting")
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => lines.push(String(message)))
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.row().phase === "booting")
          yield* TestClock.adjust("60 seconds")
          yield* stage.until(() => stage.released() > 0)
        })
      )
      const [evidence, ...others] = lines.filter((line) => line.includes("said this last"))
      assert.isEmpty(others)
      assert.include(evidence, `${stage.row().id} fails with boot_timeout`)
      assert.notInclude(lines.join(), "hf_abcdefghijkl")
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("whose custom resource is deleted gets it back, with its status", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      const settled = stage.until(() => stage.mirrored()?.message === "Serves.")
      yield* stage.operate(
        Effect.gen(function* () {
          yield* settled
          stage.kube.drop("ModelDeployment", stage.kube.names("ModelDeployment")[0] ?? "")
          yield* settled
        })
      )
      // The serving revision was not touched.
      assert.strictEqual(stage.writes.filter((write) => write.startsWith("remove Pod")).length, 0)
      assert.deepStrictEqual(stage.published, [1])
      assert.deepStrictEqual(phasesOf(stage), allPhases)
    })
  })

  it.effect("whose engine goes while it serves is withdrawn, and gets a new one", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      const settled = stage.until(() => stage.mirrored()?.message === "Serves." && stage.kube.names("Pod").length === 1)
      yield* stage.operate(
        Effect.gen(function* () {
          yield* settled
          stage.kube.drop("Pod", stage.kube.names("Pod")[0] ?? "")
          yield* stage.until(() => stage.published.length >= 3)
          yield* settled
        })
      )
      assert.deepStrictEqual(stage.published, [1, 0, 1])
      assert.deepStrictEqual(phasesOf(stage), allPhases)
    })
  })

  for (const what of ["its next phase", "what is published"]) {
    it.effect(`whose operator is superseded and may not write ${what} gets a pass about once a second, not without a pause`, () => {
      const stage = makeStage()
      const idle = Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
      return stage.operate(
        Effect.gen(function* () {
          if (what === "what is published") {
            yield* stage.until(() => stage.mirrored()?.message === "Serves.")
            const containers = [{ name: "engine", ready: false, restartCount: 0, state: { running: {} } }]
            stage.kube.setStatus("Pod", stage.kube.names("Pod")[0] ?? "", { phase: "Running", conditions: [], containerStatuses: containers })
          }
          stage.supersede()
          yield* idle
          const before = stage.reads.length
          yield* idle
          assert.strictEqual(stage.reads.length, before)
          yield* TestClock.adjust("10 seconds")
          assert.isAtLeast(stage.reads.length, before + 5)
          assert.isAtMost(stage.reads.length, before + 20)
        })
      )
    })
  }

  it.effect("whose engine hangs while it serves, its container running, is reported and gets a new engine after its boot deadline", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.mirrored()?.message === "Serves.")
          const [name = ""] = stage.kube.names("Pod")
          const uid = () => {
            const metadata = Option.getOrUndefined(stage.kube.find("Pod", name))?.metadata
            return Predicate.isObject(metadata) ? metadata.uid : undefined
          }
          const before = uid()
          const containers = [{ name: "engine", ready: false, restartCount: 0, state: { running: {} } }]
          const conditions = [{ type: "PodScheduled", status: "True" }]
          const ready = { type: "Ready", status: "False", lastTransitionTime: new Date(0).toISOString() }
          stage.kube.setStatus("Pod", name, { phase: "Running", podIP: "127.0.3.1", conditions: [...conditions, ready], containerStatuses: containers })
          yield* stage.until(() => stage.published.length === 2)
          yield* TestClock.adjust("59 seconds")
          assert.strictEqual(uid(), before)
          yield* TestClock.adjust("1 second")
          yield* stage.until(() => stage.published.length === 3)
          assert.notStrictEqual(uid(), before)
        })
      )
      assert.deepStrictEqual(stage.published, [1, 0, 1])
      const eventNames = stage.kube.names("Event").filter((name) => name.includes("enginereplaced"))
      assert.strictEqual(eventNames.length, 1)
      assert.strictEqual(stage.writes.filter((write) => write.startsWith("remove Pod ")).length, 1)
    })
  })
})

describe("a custom resource without a deployment", () => {
  it.effect("keeps the engine that carries its id, which is deleted once the resource is", () => {
    const stage = makeStage()
    const settled = stage.until(() => stage.mirrored()?.message === "Serves.")
    return Effect.gen(function* () {
      yield* stage.operate(settled)
      // Another database.
      stage.forget()
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => JSON.stringify(stage.mirrored()).includes("NotAdopted"))
          assert.strictEqual(stage.kube.names("Pod").length, 1)
          assert.strictEqual(stage.kube.names("PodDisruptionBudget").length, 1)
          stage.kube.drop("ModelDeployment", stage.kube.names("ModelDeployment")[0] ?? "")
          yield* stage.until(() => stage.kube.names("Pod").length === 0)
          assert.isEmpty([...stage.kube.names("PodDisruptionBudget"), ...stage.kube.names("Job"), ...stage.kube.names("Secret")])
        })
      )
    })
  })
})

describe("a host class in the cluster", () => {
  const statusOf = (stage: ReturnType<typeof makeStage>) => {
    const status = Option.getOrUndefined(stage.kube.find("HostClass", "local"))?.status
    return Predicate.isObject(status) ? status : {}
  }

  it.effect("gets its status a little after a change, once for all changes, and then not again", () => {
    const stage = makeStage()
    const written = () => stage.writes.filter((write) => write === "status HostClass local").length
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.mirrored()?.message === "Serves.")
        assert.strictEqual(written(), 0)
        yield* TestClock.adjust("10 seconds")
        yield* stage.until(() => written() > 0)
        assert.deepInclude(statusOf(stage), { nodes: 1, openNodes: 1, gpus: 1, freeGpus: 0, models: 1, modelNames: ["acme/tiny-chat"], writtenBy: "seatrial" })
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(written(), 1)
        // Another installation's operator writes its status now.
        stage.kube.setStatus("HostClass", "local", { writtenBy: "other" })
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual([written(), statusOf(stage)], [1, { writtenBy: "other" }])
      })
    )
  })
})
