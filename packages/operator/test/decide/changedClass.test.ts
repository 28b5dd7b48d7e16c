import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { decide } from "../../src/decide/decide.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { observationOf, otherDeployment, pod, podClass, report, url, withRevision } from "../observations.ts"
import { words } from "./words.ts"

type Case = readonly [promise: string, observation: Observation, expected: string, said?: string]

const minute = 60_000
const serving: Partial<Run> = { ...withRevision({ status: "active", checks: report }), endedAt: 0 }
const endpoints = [{ url, pod: pod.name, reachable: true }]
const unstarted = { ...pod, ready: false, started: false }
const unplaced = { ...unstarted, scheduled: false, unschedulable: { since: 0, message: "0/1 nodes" } }
const untried = withRevision({ engineImage: null })
const [tried, other] = ["a", "b"].map((digit) => `sha256:${digit.repeat(64)}`)
const withDigest = { ...pod, imageDigest: tried ?? "" }
const moved = { ...pod, imageDigest: other ?? "" }
const verified = { status: "active", checks: report, engineDigest: tried ?? "" } as const
const replacing = { ...podClass, rollout: "replace" as const }
const predecessor: Partial<Run> = { predecessor: { run: otherDeployment, commit: "b".repeat(40), hostClass: "local", gpus: 1, replicas: 1 } }
const outdated = "The host class has changed since the pod was requested. Another pod is requested."
const cordoned = "its node takes no new pods (cordoned)"
const none = "no node has the class's labels card=h10 (nodes checked: 3)"

const tables: Record<string, ReadonlyArray<Case>> = {
  "the image of an engine": [
    ["is noted before the trial begins", observationOf("checking", { pod }, untried), "RecordEngineImage"],
    ["is noted once", observationOf("checking", { pod }, withRevision({ engineImage: "reference:1" })), "work checking"],
    ["is not recorded from an engine that is not ready", observationOf("checking", { pod: { ...pod, ready: false } }, untried), "again 600000"],
    [
      "is recorded from the serving engine if its trial did not record it",
      observationOf("activated", { pod }, { ...withRevision({ status: "active", checks: report, engineImage: null }), endedAt: 0, endpoints }),
      "RecordEngineImage"
    ],
    [
      "is recorded with its digest once its node reports it",
      observationOf("checking", { pod: withDigest }, withRevision({ engineImage: "reference:1" })),
      "RecordEngineImage"
    ],
    ["is recorded with its digest once", observationOf("checking", { pod: withDigest }, withRevision({ engineDigest: tried ?? "" })), "work checking"],
    [
      "is not recorded from a pod whose image was changed",
      observationOf("checking", { pod: { ...withDigest, image: "reference:9" } }, withRevision({})),
      "work checking"
    ],
    [
      "whose tag has moved is not tried",
      observationOf("checking", { pod: moved }, withRevision({ engineDigest: tried ?? "" })),
      "RecordEvent, remove pod pod-1",
      `The image reference:1 now has the digest ${other}, but ${tried} was verified. The engine is replaced with the verified image.`
    ],
    [
      "whose tag has moved gets no traffic",
      observationOf("activating", { pod: moved }, withRevision({ engineDigest: tried ?? "", checks: report })),
      "RecordEvent, remove pod pod-1"
    ],
    [
      "whose tag has moved loses its traffic",
      observationOf("activated", { pod: moved }, { ...withRevision(verified), endedAt: 0, endpoints }),
      "publish nothing, RecordEvent, remove pod pod-1"
    ],
    [
      "that was requested by digest is that image, whatever its node calls it",
      observationOf("activated", { pod: { ...moved, imagePinned: true } }, { ...withRevision(verified), endedAt: 0, endpoints }),
      ""
    ]
  ],
  "a pod that never started, of a host class that has changed since": [
    [
      "gives way to another while its node cannot pull its image",
      observationOf("provisioning", { outdated: true, pod: { ...unstarted, blocked: "ImagePullBackOff" } }),
      "remove pod pod-1",
      outdated
    ],
    ["gives way to another while no node can take it", observationOf("provisioning", { outdated: true, pod: unplaced }), "remove pod pod-1", outdated],
    [
      "gives way to another in Kueue's queue",
      observationOf("queued", { outdated: true, podClass: { ...podClass, queueName: "gpus" }, pod: { ...unplaced, gated: true, unschedulable: null } }),
      "remove pod pod-1"
    ],
    ["gives way to another in the trial", observationOf("checking", { outdated: true, pod: unstarted }), "remove pod pod-1", outdated],
    [
      "is replaced if it is to serve",
      observationOf("activated", { outdated: true, pod: unplaced }, { ...serving, endpoints }),
      "publish nothing, remove pod pod-1",
      outdated
    ],
    ["is waited for if it is terminating already", observationOf("provisioning", { outdated: true, pod: { ...unplaced, deleting: true } }), ""]
  ],
  "what serves, where the class says replace": [
    [
      "is not stopped for GPUs that the run could not have",
      observationOf("queued", { freeSlots: 0, podClass: replacing, predecessorHolds: true, predecessorPlace: cordoned }, predecessor),
      "",
      `The deployment waits for 1 GPU of simulated: first in the queue. The serving revision of this model (${otherDeployment}) holds 1 GPU. Stopping that revision would not help: ${cordoned}.`
    ],
    [
      "nor if the only node of the class is cordoned",
      observationOf(
        "queued",
        {
          freeSlots: 0,
          podClass: replacing,
          predecessorHolds: true,
          predecessorPlace: cordoned,
          shortage: "the only node of the class takes no new pods (cordoned)"
        },
        predecessor
      ),
      "",
      `The deployment waits for 1 GPU of simulated: the only node of the class takes no new pods (cordoned). The serving revision of this model (${otherDeployment}) holds 1 GPU. Stopping that revision would not help: ${cordoned}.`
    ],
    [
      "nor within its organization's limit",
      observationOf(
        "waiting",
        { freeSlots: 0, podClass: replacing, predecessorHolds: true, predecessorPlace: cordoned, organizationGpus: 1 },
        { ...predecessor, gpuLimit: 1 }
      ),
      ""
    ],
    [
      "is stopped for the limit if another node has room",
      observationOf(
        "waiting",
        { freeSlots: 1, podClass: replacing, predecessorHolds: true, predecessorPlace: cordoned, organizationGpus: 1 },
        { ...predecessor, gpuLimit: 1 }
      ),
      "enter provisioning replacing"
    ]
  ],
  "GPUs that no node can give": [
    [
      "are reported with the reason, not as a place in a queue",
      observationOf("queued", { freeSlots: 0, shortage: none }),
      "",
      `The deployment waits for 1 GPU of simulated: ${none}.`
    ],
    ["are waited for by new runs", observationOf("waiting", { freeSlots: 0, shortage: none }), "enter queued"]
  ]
}

for (const [name, cases] of Object.entries(tables)) {
  describe(name, () => {
    for (const [promise, observation, expected, said] of cases) {
      it(promise, () => {
        const decision = decide(observation, 0)
        assert.strictEqual(words(decision), expected)
        if (said !== undefined) assert.strictEqual(decision.message, said)
      })
    }
  })
}

describe("an engine that lost its GPUs before it had a node", () => {
  const reason = (change: Partial<Observation>) => {
    const decision = decide(observationOf("provisioning", { freeSlots: 0, pod: unplaced, ...change }), minute)
    const [entered] = decision.actions.filter((action) => action._tag === "Enter")
    return entered?._tag === "Enter" ? entered.reason : null
  }
  it("says who has them, and says that they were taken only if they were", () => {
    assert.strictEqual(reason({}), "The GPUs were taken before the engine had a node.")
    assert.strictEqual(reason({ setAside: true }), "The GPUs were reserved for other organizations before the engine had a node.")
    assert.strictEqual(
      reason({ shortage: "the only node of the class takes no new pods (cordoned)" }),
      "No node can take the engine anymore: the only node of the class takes no new pods (cordoned)."
    )
  })
})
