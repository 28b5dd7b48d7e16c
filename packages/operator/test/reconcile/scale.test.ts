import { assert, describe, it } from "@effect/vitest"
import { DeploymentId, OrgId } from "@seatrial/domain"
import { Effect, Option, Predicate, Schema } from "effect"
import { enginePodName, objectName } from "../../src/resources/objectNames.ts"
import { run } from "../observations.ts"
import { makeStage } from "./stage.ts"

const ids = (count: number) =>
  Array.from({ length: count }, (_, index) => Schema.decodeSync(DeploymentId)(`dep_01k3v7m8q2w4x6y8z0a2b4d${String(index).padStart(3, "0")}`))
const settle = Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow, { discard: true })

/**
 * The passes and writes that one engine causes when it becomes unready and ready again, while this many other models
 * serve.
 */
const costOfOneChange = Effect.fnUntraced(function* (others: number) {
  const stage = makeStage()
  const { kube } = stage
  stage.grow(ids(others))
  const says = (id: DeploymentId, message: string) => {
    const status = Option.getOrUndefined(kube.find("ModelDeployment", objectName(id)))?.status
    return Predicate.isObject(status) && String(status.message).startsWith(message)
  }
  const pod = enginePodName(run.id)
  const ready = (status: string) => {
    const podStatus = Option.getOrUndefined(kube.find("Pod", pod))?.status
    const conditions = [
      { type: "PodScheduled", status: "True" },
      { type: "Ready", status }
    ]
    kube.setStatus("Pod", pod, { ...(Predicate.isObject(podStatus) ? podStatus : {}), conditions })
  }
  return yield* stage.operate(
    Effect.gen(function* () {
      yield* stage.until(() => stage.rows().every(({ id }) => says(id, "Serves.")))
      yield* settle
      const from = { reads: stage.reads.length, writes: stage.writes.length }
      ready("False")
      yield* stage.until(() => says(run.id, "The engine is not ready"))
      ready("True")
      yield* stage.until(() => says(run.id, "Serves."))
      yield* settle
      return { looked: [...new Set(stage.reads.slice(from.reads))], passes: stage.reads.length - from.reads, writes: stage.writes.slice(from.writes) }
    })
  )
})

describe("a change of one engine", () => {
  it.effect("causes a pass of its own run, and costs the same whether few or many others serve", () =>
    Effect.gen(function* () {
      const few = yield* costOfOneChange(2)
      const many = yield* costOfOneChange(24)
      assert.deepStrictEqual(few.looked, [run.id])
      assert.deepStrictEqual(many, few)
    })
  )
})

describe("many runs that begin at once", () => {
  it.effect("are finished one after the other, not all of them step by step", () =>
    Effect.gen(function* () {
      const stage = makeStage()
      stage.grow(ids(64))
      yield* stage.operate(
        Effect.andThen(
          stage.until(() => stage.rows().every(({ phase }) => phase === "activated")),
          settle
        )
      )
      const firstRead = new Set<string>()
      const order = stage.reads.filter((id) => !firstRead.has(id) && firstRead.add(id))
      const [first = "", last = ""] = [order[0], order.at(-1)]
      const readsOf = (id: string) => stage.reads.flatMap((read, index) => (read === id ? [index] : []))
      assert.isBelow(readsOf(first)[2] ?? Number.POSITIVE_INFINITY, readsOf(last)[0] ?? 0)
    })
  )

  it.effect("of one organization do not delay the first pass of another one's run", () =>
    Effect.gen(function* () {
      const stage = makeStage()
      const [late = run.id, ...early] = ids(65).toReversed()
      stage.grow(early)
      stage.add({ ...run, id: late, engineRun: late, orgId: Schema.decodeSync(OrgId)(`${run.orgId.slice(0, -1)}z`) })
      yield* stage.operate(stage.until(() => stage.reads.includes(late)))
      // Four workers each begin one pass, and the next turn is that of the other organization.
      assert.isAtMost([...new Set(stage.reads)].indexOf(late), 8)
    })
  )
})
