import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { finalizer } from "../../src/resources/objectNames.ts"
import { modelId } from "../observations.ts"
import { idle, makeDoor, spec } from "./door.ts"

describe("an applied object", () => {
  it.effect("becomes a run like any other, is the only object that shows it, and is kept until its deletion is recorded", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(Effect.andThen(door.served(door.first), idle))
      assert.strictEqual(door.made(), 1)
      assert.deepStrictEqual(door.kube.names("ModelDeployment"), ["tiny"])
      assert.deepStrictEqual(door.metadata().finalizers, [finalizer])
      assert.deepInclude(door.status(), { model: "acme/tiny", endpoint: "acme/tiny", observedGeneration: 1, phase: "activated" })
      for (const name of ["Accepted", "Ready", "Activated"]) assert.deepInclude(door.condition(name), { status: "True", observedGeneration: 1 })
      // Settled: a new operator writes nothing.
      const before = door.writes.length
      yield* door.operate(Effect.andThen(door.served(door.first), idle))
      assert.strictEqual(door.writes.length, before)
    })
  })

  it.effect("keeps the finalizers of others", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply(spec, 1, { finalizers: ["example.com/a", "example.com/b"] })
      yield* door.operate(door.served(door.first))
      assert.deepStrictEqual(door.metadata().finalizers, ["example.com/a", "example.com/b", finalizer])
      door.kube.remove("ModelDeployment", "tiny")
      yield* door.operate(door.until(() => !String(door.metadata().finalizers).includes(finalizer)))
      assert.deepStrictEqual(door.metadata().finalizers, ["example.com/a", "example.com/b"])
    })
  })

  it.effect("creates one run, whichever single write is the operator's last", () =>
    Effect.gen(function* () {
      for (let count = 1; ; count++) {
        const door = makeDoor()
        door.apply()
        const done = () => door.status().message === "Serves."
        const died = yield* door.operateUntilWrite(count, done)
        yield* door.operate(door.served(door.first))
        assert.deepStrictEqual([door.made(), door.engines().length, door.kube.names("ModelDeployment")], [1, 1, ["tiny"]], `after write ${count}`)
        if (!died) break
      }
    })
  )

  it.effect("that is changed starts another run, and the serving revision continues", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          door.setStory("starting")
          door.apply({ ...spec, serve: false }, 2)
          yield* door.until(() => door.status().deploymentId === door.second)
          yield* TestClock.adjust("1 second")
          yield* door.until(() => door.status().phase !== "screening")
        })
      )
      assert.strictEqual(door.made(), 2)
      assert.deepInclude(door.condition("Activated"), { status: "False", observedGeneration: 2 })
      const [before] = door.rows().filter(({ id }) => id === door.first)
      assert.deepStrictEqual([before?.phase, before?.applied?.current], ["activated", null])
      assert.include(door.engines(), `${door.first.replace("_", "-")}-engine-0`)
      assert.deepStrictEqual(door.kube.names("ModelDeployment"), ["tiny"])
    })
  })

  it.effect("that sets a number of engines is scaled without another run, also after it was lost, and keeps the number that it no longer sets", () => {
    const door = makeDoor()
    door.kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": "4" }, conditions: [{ type: "Ready", status: "True" }] } })
    const scaled = (desired: number, ready: number) =>
      door.until(() => door.status().desiredReplicas === desired && door.status().replicas === ready && door.status().readyReplicas === ready)
    return Effect.gen(function* () {
      door.apply({ ...spec, replicas: 2 })
      yield* door.operate(
        Effect.gen(function* () {
          yield* scaled(2, 2)
          door.apply({ ...spec, replicas: 3 }, 2)
          yield* scaled(3, 3)
          door.kube.drop("ModelDeployment", "tiny")
          yield* door.until(() => door.metadata().uid !== undefined)
          assert.deepInclude(door.object()?.spec, { replicas: 3 })
          door.apply(spec, 3)
          yield* door.until(() => door.rows()[0]?.applied?.current?.generation === 3)
          yield* idle
        })
      )
      assert.deepStrictEqual([door.made(), door.rows()[0]?.replicas, door.rows()[0]?.applied?.current?.replicas], [1, 3, undefined])
    })
  })

  it.effect("that is changed midway cancels its unfinished run and deletes all of its objects", () => {
    const door = makeDoor()
    door.setStory("starting")
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.until(() => door.rows()[0]?.phase === "booting")
          door.setStory("ready")
          door.apply({ ...spec, serving: {} }, 2)
          yield* door.served(door.second)
          yield* door.until(() => door.engines().length === 1)
        })
      )
      assert.deepStrictEqual(
        door.rows().map(({ phase }) => phase),
        ["cancelled", "activated"]
      )
    })
  })

  it.effect("that is deleted retires its model and goes, even if the operator dies at any of the writes", () =>
    Effect.gen(function* () {
      for (let count = 1; count <= 6; count++) {
        const door = makeDoor()
        door.apply()
        yield* door.operate(door.served(door.first))
        door.kube.remove("ModelDeployment", "tiny")
        const gone = () => door.object() === undefined && door.rows()[0]?.modelDeleted === true && door.rows()[0]?.endpoints.length === 0
        yield* door.operateUntilWrite(count, gone)
        yield* door.operate(door.until(gone))
        assert.deepStrictEqual([door.made(), door.applied.bindings.size], [1, 0])
      }
    })
  )

  it.effect("that is deleted during a pass that read its run before is not created again", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          const deleted = Effect.gen(function* () {
            door.setAfterRead(Effect.void)
            door.kube.remove("ModelDeployment", "tiny")
            yield* door.until(() => door.object() === undefined)
            yield* idle
          })
          door.setAfterRead(deleted)
          for (const row of door.rows()) door.add(row)
          yield* door.until(() => door.rows()[0]?.modelDeleted === true && door.rows()[0]?.endpoints.length === 0)
          yield* idle
        })
      )
      assert.isUndefined(door.object())
      assert.strictEqual(door.made(), 1)
    })
  })

  it.effect("is released after a minute in which its deletion could not be recorded", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(door.served(door.first))
      door.applied.setAway(true)
      door.kube.remove("ModelDeployment", "tiny")
      yield* door.operate(
        Effect.gen(function* () {
          yield* idle
          yield* TestClock.adjust("55 seconds")
          yield* idle
          assert.isDefined(door.object())
          yield* TestClock.adjust("5 seconds")
          yield* door.until(() => door.object() === undefined)
        })
      )
    })
  })

  it.effect("that was deleted while no operator ran has that minute with the next one, and is retired although its first attempt fails", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(door.served(door.first))
      door.kube.remove("ModelDeployment", "tiny")
      yield* TestClock.adjust("1 hour")
      door.applied.setAway(true)
      yield* door.operate(
        Effect.gen(function* () {
          yield* idle
          assert.isDefined(door.metadata().deletionTimestamp)
          door.applied.setAway(false)
          yield* TestClock.adjust("5 seconds")
          yield* door.until(() => door.object() === undefined)
          yield* idle
        })
      )
      assert.deepStrictEqual([door.rows()[0]?.modelDeleted, door.object(), door.made()], [true, undefined, 1])
    })
  })

  it.effect("that was lost without being deleted is created again, for the same run", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          const { uid } = door.metadata()
          door.kube.drop("ModelDeployment", "tiny")
          yield* door.until(() => door.metadata().uid !== undefined && door.metadata().uid !== uid)
          yield* door.served(door.first)
        })
      )
      assert.deepStrictEqual([door.made(), door.engines().length, door.metadata().finalizers], [1, 1, [finalizer]])
      assert.notInclude(door.writes.join(), "remove Pod")
    })
  })

  it.effect("is adopted again if another database does not know it", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(door.served(door.first))
      door.forget()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.until(() => door.status().deploymentId === door.second)
          // The engine of an unknown run is deleted once no object shows it.
          yield* TestClock.adjust("10 seconds")
          yield* door.served(door.second)
        })
      )
      assert.deepStrictEqual([door.made(), door.engines().length], [2, 1])
      assert.deepStrictEqual(door.kube.names("ModelDeployment"), ["tiny"])
    })
  })

  it.effect("in another namespace that is mapped to an organization is accepted too, and its download has no owner there", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.kube.add("ModelDeployment", "tiny", { metadata: { namespace: "team", generation: 1 }, spec })
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          door.kube.drop("ModelDeployment", "tiny")
          yield* door.until(() => door.metadata().uid !== undefined)
          yield* door.served(door.first)
          assert.strictEqual(door.metadata().namespace, "team")
          door.kube.remove("ModelDeployment", "tiny")
          yield* door.until(() => door.object() === undefined)
        })
      )
      assert.strictEqual(door.made(), 1)
      assert.isTrue(door.writes.some((write) => write.startsWith("apply Job")))
    })
  })

  it.effect("in another namespace keeps its engine if a database does not know it, even while that namespace cannot be read", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.kube.add("ModelDeployment", "tiny", { metadata: { namespace: "team", generation: 1 }, spec })
      yield* door.operate(door.served(door.first))
      const [engine] = door.engines()
      door.forget()
      door.kube.setUnlisted("team", true)
      yield* door.operate(
        Effect.gen(function* () {
          yield* idle
          yield* TestClock.adjust("1 minute")
          yield* idle
          assert.deepStrictEqual(door.engines(), [engine])
        })
      )
      door.kube.setUnlisted("team", false)
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.until(() => door.status().deploymentId === door.second)
          yield* TestClock.adjust("10 seconds")
          yield* door.served(door.second)
          assert.notInclude(door.engines(), engine)
        })
      )
    })
  })

  it.effect("with a name that is taken reports that once, with an event, and is accepted once the name is free", () => {
    const door = makeDoor()
    door.applied.taken.add("tiny")
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.until(() => door.condition("Accepted").reason === "NameTaken")
          yield* idle
          assert.strictEqual(door.writes.filter((write) => write === "status ModelDeployment tiny").length, 1)
          assert.strictEqual(door.kube.names("Event").length, 1)
          assert.include(String(door.status().message), "another name")
          assert.strictEqual(door.status().phase, "refused")
          door.applied.taken.clear()
          yield* TestClock.adjust("60 seconds")
          yield* door.served(door.first)
        })
      )
      assert.deepInclude(door.condition("Accepted"), { status: "True", observedGeneration: 1 })
      assert.strictEqual(door.status().phase, "activated")
    })
  })

  it.effect("that is changed and refused repeatedly has one event that counts, also after a crash, at a bounded rate", () => {
    const door = makeDoor()
    door.applied.taken.add("tiny")
    const event = () => Option.getOrThrow(door.kube.find("Event", door.kube.names("Event")[0] ?? ""))
    const refuse = Effect.fnUntraced(function* (generation: number) {
      door.apply({ ...spec, serving: { hostClass: "local", maxContext: generation } }, generation)
      yield* door.until(() => door.condition("Accepted").observedGeneration === generation)
    })
    return Effect.gen(function* () {
      yield* door.operate(refuse(1))
      yield* door.operate(
        Effect.gen(function* () {
          assert.deepInclude(event(), { reason: "Refused", action: "Validate", eventTime: "1970-01-01T00:00:00.000000Z" })
          assert.notProperty(event(), "series")
          yield* TestClock.adjust("2 minutes")
          yield* refuse(2)
          assert.deepInclude(event(), { eventTime: "1970-01-01T00:00:00.000000Z", series: { count: 2, lastObservedTime: "1970-01-01T00:02:00.000000Z" } })
          // The event was recorded, and the operator died before the status was written: it is not counted twice.
          const { status: _, ...before } = door.object() ?? {}
          door.kube.add("ModelDeployment", "tiny", before)
          yield* door.until(() => door.condition("Accepted").observedGeneration === 2)
          assert.nestedPropertyVal(event(), "series.count", 2)
          for (let generation = 3; generation <= 40; generation++) yield* refuse(generation)
          assert.nestedPropertyVal(event(), "series.count", 25)
          yield* TestClock.adjust("5 minutes")
          yield* refuse(41)
          assert.nestedPropertyVal(event(), "series.count", 26)
          assert.strictEqual(door.kube.names("Event").length, 1)
        })
      )
    })
  })

  it.effect("that is refused says so in its status even if no event can be created", () => {
    const door = makeDoor()
    door.applied.taken.add("tiny")
    door.kube.refuse("Event", 403, "Denied")
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(door.until(() => door.condition("Accepted").reason === "NameTaken"))
      assert.deepStrictEqual(door.kube.names("Event"), [])
    })
  })

  it.effect("that names a model revises it, is created again with that name if it was lost, and does not delete the model when it is deleted", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply({ ...spec, modelId })
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          assert.strictEqual(door.status().model, "acme/tiny-chat")
          const { uid } = door.metadata()
          door.kube.drop("ModelDeployment", "tiny")
          yield* door.until(() => door.metadata().uid !== undefined && door.metadata().uid !== uid)
          yield* door.served(door.first)
          assert.deepInclude(door.object()?.spec, { modelId })
          door.kube.remove("ModelDeployment", "tiny")
          yield* door.until(() => door.object() === undefined)
          yield* idle
        })
      )
      assert.deepStrictEqual([door.made(), door.engines().length, door.rows()[0]?.modelDeleted], [1, 1, false])
      assert.strictEqual(door.rows()[0]?.endpoints.length, 1)
    })
  })

  it.effect("that was lost and had omitted settings and ref of its model is created again with these, and starts no run", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply({ source: spec.source, modelId })
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          const { uid } = door.metadata()
          door.kube.drop("ModelDeployment", "tiny")
          yield* door.until(() => door.metadata().uid !== undefined && door.metadata().uid !== uid)
          yield* door.served(door.first)
          yield* idle
          assert.strictEqual(door.made(), 1)
          // Later differences are changes.
          door.apply({ source: spec.source, modelId, serving: { hostClass: "local", maxContext: 256 } }, 2)
          yield* door.until(() => door.made() === 2)
        })
      )
    })
  })

  it.effect("for a host class that breaks a rule says which, and the class is not offered to others", () => {
    const door = makeDoor()
    const local = Option.getOrUndefined(door.kube.find("HostClass", "local"))?.spec
    return Effect.gen(function* () {
      door.kube.add("HostClass", "sliced", { spec: { ...(Predicate.isObject(local) ? local : {}), gpuCount: 2, gpuResource: "nvidia.com/mig-1g.10gb" } })
      door.apply({ ...spec, serving: { hostClass: "sliced" } })
      yield* door.operate(door.until(() => door.condition("Accepted").reason === "Invalid"))
      assert.include(String(door.status().message), "host class sliced. gpuCount must be 1")
      assert.strictEqual(door.made(), 0)
      assert.deepStrictEqual([...new Set(door.classes)], ["local"])
    })
  })

  it.effect("for a host class whose engines span several nodes says that this is not supported yet", () => {
    const door = makeDoor()
    const local = Option.getOrUndefined(door.kube.find("HostClass", "local"))?.spec
    return Effect.gen(function* () {
      door.kube.add("HostClass", "wide", { spec: { ...(Predicate.isObject(local) ? local : {}), nodes: 4 } })
      door.apply({ ...spec, serving: { hostClass: "wide" } })
      yield* door.operate(door.until(() => door.condition("Accepted").reason === "Invalid"))
      assert.include(String(door.status().message), "nodes: 4, which is not supported yet")
      assert.strictEqual(door.made(), 0)
    })
  })

  it.effect("that names a model of no or another organization says so, and creates nothing", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply({ ...spec, modelId: "mdl_01k3v7m8q2w4x6y8z0a2b4c6d0" })
      yield* door.operate(door.until(() => door.condition("Accepted").reason === "ModelUnknown"))
      assert.include(String(door.status().message), "has no model mdl_01k3v7m8q2w4x6y8z0a2b4c6d0")
      assert.strictEqual(door.made(), 0)
    })
  })

  it.effect("whose change is refused keeps its run, and reports both", () => {
    const door = makeDoor()
    return Effect.gen(function* () {
      door.apply()
      yield* door.operate(
        Effect.gen(function* () {
          yield* door.served(door.first)
          door.apply({ ...spec, organization: "other" }, 2)
          door.apply({ ...spec, serving: { hostClass: "nowhere" } }, 3)
          yield* door.until(() => String(door.status().message).includes("There is no host class nowhere"))
          yield* idle
        })
      )
      assert.include(String(door.status().message), "The previously accepted one continues: Serves.")
      assert.deepInclude(door.condition("Accepted"), { status: "False", reason: "Invalid", observedGeneration: 3 })
      assert.deepInclude(door.condition("Ready"), { status: "True", observedGeneration: 1 })
      assert.strictEqual(door.made(), 1)
    })
  })
})
