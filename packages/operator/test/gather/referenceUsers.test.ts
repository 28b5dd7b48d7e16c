import { assert, describe, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import { Effect } from "effect"
import { makeReferenceLedger } from "../../src/gather/references/ReferenceLedger.ts"
import { makeReferenceUsers } from "../../src/gather/references/ReferenceUsers.ts"
import { ObservedReference } from "../../src/observation/ObservedReference.ts"
import { referenceLabel } from "../../src/resources/objectNames.ts"

const { Absent, Active } = ObservedReference
const idOf = (digit: string) => DeploymentId.make(`dep_${digit.repeat(26)}`)
const [one, two, three] = [idOf("1"), idOf("2"), idOf("3")]
const jobNamed = (name: string, type?: string) => ({
  metadata: { name, labels: { [referenceLabel]: name } },
  status: { conditions: type === undefined ? [] : [{ type, status: "True" }] }
})

/** Users of at most one Job. `enqueued`: the runs and Jobs of which a pass was requested. */
const makeUsers = () => {
  const ledger = makeReferenceLedger()
  const enqueued: Array<string> = []
  const enqueue = (key: string) => Effect.sync(() => void enqueued.push(key))
  const users = makeReferenceUsers({ ledger, limits: { inAll: 1, perOrganization: 1 }, enqueue, enqueueJob: enqueue })
  /** What a run observes that needs a Job. */
  const passes = (id: DeploymentId, creates = true) => {
    const reference = users.turned(id, Absent())
    return [reference._tag, users.decided(id, reference, creates && reference._tag === "Absent")]
  }
  return { ledger, enqueued, users, passes }
}

describe("the runs that use the Job of a reference", () => {
  it.effect("never take the same turn, and the next one goes when the Job has ended", () =>
    Effect.gen(function* () {
      const { ledger, passes, users } = makeUsers()
      yield* users.note(one, { name: "j1", organization: "a" })
      yield* users.note(two, { name: "j2", organization: "b" })
      assert.deepStrictEqual(
        [passes(one), passes(two)],
        [
          ["Absent", false],
          ["Waiting", false]
        ]
      )
      ledger.setJob("j1", jobNamed("j1"))
      assert.isTrue(users.decided(one, Active(), false))
      assert.deepStrictEqual(users.next(), [])
      ledger.setJob("j1", jobNamed("j1", "Complete"))
      assert.deepStrictEqual(users.next(), [two])
      assert.deepStrictEqual(passes(two), ["Absent", false])
    })
  )

  it.effect("keep a turn until the Job exists, also if another organization has none", () =>
    Effect.gen(function* () {
      const { passes, users } = makeUsers()
      yield* users.note(two, { name: "j2", organization: "a" })
      passes(two)
      yield* users.note(one, { name: "j1", organization: "b" })
      assert.deepStrictEqual(
        [passes(one), passes(two)],
        [
          ["Waiting", false],
          ["Absent", false]
        ]
      )
    })
  )

  it.effect("leave a turn that they cannot use now to others, and may have a later one", () =>
    Effect.gen(function* () {
      const { passes, users } = makeUsers()
      yield* users.note(one, { name: "j1", organization: "a" })
      yield* users.note(two, { name: "j2", organization: "b" })
      assert.deepStrictEqual(
        [passes(one), passes(two)],
        [
          ["Absent", false],
          ["Waiting", false]
        ]
      )
      assert.deepStrictEqual(passes(one, false), ["Absent", true])
      assert.deepStrictEqual(users.next(), [two])
      passes(two)
      assert.deepStrictEqual(passes(one), ["Waiting", false])
    })
  )

  it.effect("leave their turn to others when they end", () =>
    Effect.gen(function* () {
      const { enqueued, passes, users } = makeUsers()
      yield* users.note(one, { name: "j1", organization: "a" })
      yield* users.note(two, { name: "j2", organization: "b" })
      passes(one)
      passes(two)
      yield* users.forget(one)
      assert.includeMembers(enqueued, [two])
      assert.strictEqual(users.waiting(), 1)
    })
  )

  it.effect("are known only after the first pass over each run of an earlier leader", () =>
    Effect.gen(function* () {
      const { enqueued, ledger, users } = makeUsers()
      ledger.setJob("j1", jobNamed("j1"))
      ledger.setJob("j2", jobNamed("j2", "Failed"))
      assert.isFalse(users.isUnused("j1"))
      yield* users.note(three, null)
      yield* users.expect([one, two, three])
      yield* users.note(one, { name: "j1", organization: "a" })
      yield* users.note(three, null)
      assert.deepStrictEqual([enqueued, users.isUnused("j2")], [[], false])
      yield* users.forget(two)
      assert.deepStrictEqual(enqueued, ["j1", "j2"])
      assert.deepStrictEqual([users.isUnused("j1"), users.isUnused("j2")], [false, true])
    })
  )

  it.effect("are none once the last of them has another commit", () =>
    Effect.gen(function* () {
      const { enqueued, users } = makeUsers()
      yield* users.expect([])
      yield* users.note(one, { name: "j1", organization: "a" })
      yield* users.note(one, { name: "j2", organization: "a" })
      assert.deepStrictEqual([enqueued, users.of("j1"), users.of("j2"), users.isUnused("j1")], [["j1"], [], [one], true])
    })
  )

  it("are not asked about Jobs of downloads", () => {
    const { ledger } = makeUsers()
    ledger.setJob("download", { metadata: { name: "download" } })
    assert.deepStrictEqual([ledger.names(), ledger.active()], [[], []])
  })
})
