import { assert, describe, it } from "@effect/vitest"
import { KubeClient } from "@seatrial/kube"
import { Effect, Exit, Option } from "effect"
import { removeEngine } from "../../src/apply/removeEngine.ts"
import { WatchedPod } from "../../src/resources/watched.ts"
import { makeMemoryKube } from "../reconcile/memoryKube.ts"

const name = "dep-1-engine"
const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "seatrial" }, spec: { containers: [] } }

/** A cluster with one engine, which the operator has observed before the scheduler has placed it. */
const makeCluster = Effect.gen(function* () {
  const kube = makeMemoryKube()
  kube.add("Pod", name, pod)
  const observed = yield* kube.service.get(WatchedPod, name, "seatrial")
  const pods = { get: () => Effect.succeed(observed) }
  const place = () => kube.add("Pod", name, { spec: { containers: [], nodeName: "node-1" } })
  const remove = (uid: string | null, recordHold: (pod: WatchedPod) => Effect.Effect<void>) =>
    removeEngine({ cluster: { pods }, recordHold }, { name, namespace: "seatrial", uid, force: false }).pipe(
      Effect.provideService(KubeClient, kube.service),
      Effect.exit
    )
  return { kube, place, remove, uid: Option.getOrThrow(observed).metadata.uid ?? null }
})

describe("an engine's pod is deleted", () => {
  it.effect("only after its GPUs are recorded", () =>
    Effect.gen(function* () {
      const { kube, remove, uid } = yield* makeCluster
      const dead = yield* remove(uid, () => Effect.die("Postgres is away"))
      assert.isTrue(Exit.isFailure(dead))
      assert.deepStrictEqual(kube.names("Pod"), [name])
      const recorded: Array<string> = []
      yield* remove(uid, ({ metadata }) => Effect.sync(() => void recorded.push(`${metadata.name} while ${kube.names("Pod").length}`)))
      assert.deepStrictEqual([recorded, kube.names("Pod")], [[`${name} while 1`], []])
    })
  )

  it.effect("not if the scheduler has placed it since it was observed, because its GPUs are not recorded then", () =>
    Effect.gen(function* () {
      const { kube, place, remove, uid } = yield* makeCluster
      place()
      assert.isTrue(Exit.isFailure(yield* remove(uid, () => Effect.void)))
      assert.deepStrictEqual(kube.names("Pod"), [name])
    })
  )

  it.effect("with its GPUs recorded even if no watch has shown it yet", () =>
    Effect.gen(function* () {
      const { kube, place, remove } = yield* makeCluster
      place()
      const recorded: Array<string | undefined> = []
      yield* remove(null, ({ spec }) => Effect.sync(() => void recorded.push(spec?.nodeName)))
      assert.deepStrictEqual([recorded, kube.names("Pod")], [["node-1"], []])
    })
  )
})
