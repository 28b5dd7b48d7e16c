import { assert, describe, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import { Schema } from "effect"
import { nextReferences, type ReferenceLoad } from "../../src/gather/references/nextReferences.ts"

const id = (number: number) => DeploymentId.make(`dep_${String(number).padStart(26, "0")}`)
/** The runs that wait, oldest first, as `organization name`. */
const waiting = (...runs: ReadonlyArray<string>): ReferenceLoad["waiting"] =>
  runs.map((run, index) => {
    const [organization = "", name = ""] = run.split(" ")
    return { id: id(index), name, organization }
  })
const jobs = (users: Readonly<Record<string, ReadonlyArray<string>>>): ReferenceLoad["jobs"] =>
  new Map(Object.entries(users).map(([name, organizations]) => [name, new Set(organizations)]))
const limits = { inAll: 4, perOrganization: 2 }

/** The Job "0" rests. */
const resting = new Set(["0"])

const cases: ReadonlyArray<readonly [promise: string, jobs: ReferenceLoad["jobs"], waiting: ReferenceLoad["waiting"], next: ReadonlyArray<number>]> = [
  ["without a run nobody is next", jobs({ x: ["a"] }), [], []],
  ["a run goes at once while few Jobs compute", jobs({}), waiting("a 1"), [0]],
  ["an organization gets no more than its number", jobs({}), waiting("a 1", "a 2", "a 3"), [0, 1]],
  ["and none while it has that many", jobs({ x: ["a"], y: ["a"] }), waiting("a 1"), []],
  ["an organization with many runs does not delay another", jobs({ x: ["a"], y: ["a"] }), waiting("a 1", "a 2", "b 3"), [2]],
  ["no more Jobs compute than the number in all", jobs({ w: ["a"], x: ["a"], y: ["b"], z: ["b"] }), waiting("c 1"), []],
  ["the organization with the fewest Jobs goes first", jobs({ w: ["a"], x: ["b"], y: ["d"] }), waiting("a 1", "b 2", "c 3"), [2]],
  ["among equals the oldest run goes first", jobs({ w: ["c"], x: ["c"], y: ["d"] }), waiting("a 1", "b 2"), [0]],
  ["the turns alternate between organizations", jobs({}), waiting("a 1", "a 2", "b 3", "b 4", "c 5"), [0, 2, 4, 1]],
  ["runs of one commit get one turn", jobs({}), waiting("a 1", "a 1", "b 1", "b 2"), [0, 3]],
  ["a run whose Job exists needs no turn", jobs({ x: ["b"] }), waiting("a x"), []],
  ["a shared Job counts for each organization that uses it", jobs({ x: ["a", "b"], y: ["b"] }), waiting("a 1", "a 2", "b 3"), [0]],
  ["a Job of which no user is known counts in all only", jobs({ w: [], x: [], y: [] }), waiting("a 1", "a 2"), [0]],
  ["a Job that rests goes after all others", jobs({ w: ["b"], x: ["c"] }), waiting("a 0", "b 1", "c 2"), [1, 2]],
  ["and goes if no other waits", jobs({ w: ["b"], x: ["b"] }), waiting("a 0", "b 1"), [0]]
]

describe("the next reference to compute", () => {
  for (const [promise, has, waits, next] of cases)
    it(promise, () => assert.deepStrictEqual(nextReferences({ jobs: has, waiting: waits, resting }, limits), next.map(id)))

  const small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))
  it.prop(
    "never exceeds either limit, and leaves no turn unused that a run could have",
    [Schema.Array(Schema.Tuple([small, small])).check(Schema.isMaxLength(12)), Schema.Array(Schema.Tuple([small, small])).check(Schema.isMaxLength(6))],
    ([waits, has]) => {
      const running = new Map<string, Set<string>>()
      for (const [name, organization] of has) running.set(`${name}`, (running.get(`${name}`) ?? new Set()).add(`${organization}`))
      const load = { jobs: running, waiting: waiting(...waits.map(([organization, name]) => `${organization} ${name}`)), resting }
      const next = load.waiting.filter((run) => nextReferences(load, limits).includes(run.id))
      const countOf = (organization: string) =>
        [...running.values()].filter((users) => users.has(organization)).length + next.filter((run) => run.organization === organization).length
      const names = new Set([...running.keys(), ...next.map(({ name }) => name)])
      assert.strictEqual(names.size, running.size + next.length)
      if (next.length > 0) assert.isAtMost(names.size, limits.inAll)
      for (const { organization } of next) assert.isAtMost(countOf(organization), limits.perOrganization)
      const couldGo = load.waiting.filter(({ name, organization }) => !names.has(name) && countOf(organization) < limits.perOrganization)
      if (names.size < limits.inAll) assert.deepStrictEqual(couldGo, [])
    }
  )
})
