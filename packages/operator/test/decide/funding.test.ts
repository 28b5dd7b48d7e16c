import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { progressOf } from "../../src/apply/progressOf.ts"
import { statusOf } from "../../src/apply/statusOf.ts"
import { decide } from "../../src/decide/decide.ts"
import { fundingReason } from "../../src/decide/funding.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { observationOf, otherDeployment, pod, podClass, report, withRevision } from "../observations.ts"
import { words } from "./words.ts"

const minute = 60_000
const hour = 60 * minute

const usedUp: Partial<Observation> = { funding: { why: "balance", releaseAt: hour } }
const limited: Partial<Observation> = { funding: { why: "day", releaseAt: null } }
const suspended: Partial<Observation> = { funding: { why: "suspended", releaseAt: hour } }
const gated = { ...pod, ready: false, scheduled: false, started: false, gated: true }
const serving: Partial<Run> = {
  ...withRevision({ status: "active", checks: report }),
  endedAt: 0,
  spendLimited: true,
  endpoints: [{ url: pod.url ?? "", pod: pod.name, reachable: true }]
}
const withdrawn: Partial<Run> = { ...serving, endpoints: [] }
const { revision } = withRevision({ status: "active", checks: report })
const idling: Partial<Run> =
  revision == null ? {} : { ...withdrawn, revision: { ...revision, settings: { ...revision.settings, hold_seconds: 60 } }, lastUsedAt: 2 * hour }

type Case = readonly [promise: string, observation: Observation, now: number, expected: string, message?: RegExp]

const tables: Record<string, ReadonlyArray<Case>> = {
  "a run of an organization without funds": [
    [
      "waits in the queue although GPUs are free, and checks again",
      observationOf("queued", usedUp),
      0,
      "again 30000",
      /balance of the organization acme.*purchases record --org acme/
    ],
    ["waits if a spend limit is reached", observationOf("queued", limited), 0, "again 30000", /daily spend limit.*limits set --org acme --day/],
    ["waits if its billing is suspended", observationOf("waiting", suspended), 0, "again 30000", /billing resume --org acme/],
    ["stays in its organization's queue", observationOf("waiting", usedUp), 0, "again 30000"],
    [
      "stays in its organization's queue after its download",
      observationOf("materializing", { ...usedUp, weights: { own: true } }),
      0,
      "enter waiting, again 30000"
    ],
    ["does not request GPUs from Kueue", observationOf("queued", { ...usedUp, podClass: { ...podClass, queueName: "gpus" } }), 0, "again 30000"],
    [
      "takes its request to Kueue back",
      observationOf("queued", { ...usedUp, pod: gated, podClass: { ...podClass, queueName: "gpus" } }),
      0,
      "remove pod pod-1, again 30000"
    ],
    ["does not request a node", observationOf("queued", { ...usedUp, freeSlots: 0, podClass: { ...podClass, autoscaling: true } }), 0, "again 30000"],
    [
      "does not take the GPUs of the serving revision",
      observationOf(
        "queued",
        { ...usedUp, freeSlots: 0, predecessorHolds: true, podClass: { ...podClass, rollout: "replace" } },
        { predecessor: { run: otherDeployment, commit: "b".repeat(40), hostClass: "local", gpus: 1, replicas: 1 } }
      ),
      0,
      "again 30000"
    ],
    ["continues its trial", observationOf("checking", { ...usedUp, pod }), 0, "again 30000, work checking".split(", ").reverse().join(", ")],
    ["continues once it has funds", observationOf("queued"), 0, "enter provisioning"]
  ],
  "the engine of an organization without funds": [
    ["serves during the grace period", observationOf("activated", { ...usedUp, pod }, serving), hour - 1, `again ${hour - 1 + 30_000}`, /^Serves\.$/],
    [
      "loses its traffic first",
      observationOf("activated", { ...usedUp, pod }, serving),
      hour,
      `publish nothing, again ${hour + 10_000}`,
      /^The prepaid balance of the organization acme is used up/
    ],
    [
      "finishes its requests",
      observationOf("activated", { ...usedUp, pod, withdrawnAt: hour }, { ...withdrawn, inFlight: 1 }),
      hour + 20_000,
      `again ${hour + 25_000}`,
      /The engine finishes its last requests\.$/
    ],
    [
      "releases its GPUs",
      observationOf("activated", { ...usedUp, pod, withdrawnAt: hour }, withdrawn),
      hour + 20_000,
      `remove pod pod-1, again ${hour + 50_000}`
    ],
    [
      "releases its GPUs if billing is suspended",
      observationOf("activated", { ...suspended, pod, withdrawnAt: hour }, withdrawn),
      hour + 20_000,
      `remove pod pod-1, again ${hour + 50_000}`
    ],
    [
      "releases its disruption budget",
      observationOf("activated", { ...usedUp, pod, budget: "intact", withdrawnAt: hour }, withdrawn),
      hour + 1_000,
      `RemoveBudget, again ${hour + 10_000}`
    ],
    [
      "does not start again",
      observationOf("activated", usedUp, withdrawn),
      2 * hour,
      `again ${2 * hour + 30_000}`,
      /The engine starts within a minute after that\.$/
    ],
    [
      "does not start again for a request",
      observationOf("activated", usedUp, idling),
      2 * hour,
      `again ${2 * hour + 600_000}`,
      /The next request after that starts the engine\.$/
    ],
    [
      "continues if only a spend limit is reached",
      observationOf("activated", { ...limited, pod }, serving),
      9 * hour,
      `again ${9 * hour + 30_000}`,
      /^Serves\.$/
    ],
    ["starts once it has funds", observationOf("activated", {}, withdrawn), 2 * hour, "EnsurePod"],
    ["starts for the next request once it has funds", observationOf("activated", {}, idling), 2 * hour, `EnsurePod, again ${2 * hour + 70_000}`],
    ["checks the balance while it serves", observationOf("activated", { pod }, serving), 0, "again 300000"],
    [
      "is not held as a candidate",
      observationOf("activated", { ...usedUp, pod }, { ...withRevision({ status: "draft", checks: report }), serve: false, endedAt: hour }),
      hour,
      `remove pod pod-1, again ${hour + 30_000}`
    ]
  ]
}

for (const [name, cases] of Object.entries(tables)) {
  describe(name, () => {
    for (const [promise, observation, now, expected, message] of cases) {
      it(promise, () => {
        const decision = decide(observation, now)
        assert.strictEqual(words(decision), expected)
        if (message !== undefined) assert.match(decision.message, message)
      })
    }
  })
}

describe("the status of a run without funds", () => {
  const reasonOf = (observation: Observation, now: number) => {
    const { pod: engine, run } = observation
    const input = { run, pod: engine, message: "m", cause: undefined, queue: null, download: null, generation: 1, before: undefined, now }
    return statusOf({ ...input, unfunded: fundingReason(observation, now) }).conditions?.find(({ type }) => type === "Ready")?.reason
  }
  it("has the reason in its condition, and names no command of administrators to API callers", () => {
    const waits = observationOf("queued", usedUp)
    assert.strictEqual(reasonOf(waits, 0), "BalanceUsedUp")
    assert.strictEqual(reasonOf(observationOf("waiting", limited), 0), "SpendLimitReached")
    assert.strictEqual(reasonOf(observationOf("activated", { ...suspended, pod }, serving), hour), "BillingSuspended")
    assert.strictEqual(reasonOf(observationOf("activated", { ...suspended, pod }, serving), hour - 1), "Serving")
    assert.deepStrictEqual(progressOf(waits, "m").queue, { waits_for: "organization_limit", place: null })
    for (const observation of [waits, observationOf("waiting", suspended), observationOf("activated", usedUp, withdrawn)])
      assert.notMatch(decide(observation, 2 * hour).publicMessage ?? "seatrial", /seatrial/)
  })
})
