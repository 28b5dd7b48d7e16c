import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { decide } from "../../src/decide/decide.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import { observationOf, otherDeployment, pod, podClass, report, withRevision } from "../observations.ts"
import { words } from "./words.ts"

const minute = 60_000

const full: Partial<Observation> = { freeSlots: 0 }
const scaling = { ...podClass, autoscaling: true }
const replacing = { ...podClass, rollout: "replace" as const }
const kueue = { ...podClass, queueName: "gpus" }
const predecessor: Partial<Run> = { predecessor: { run: otherDeployment, commit: "b".repeat(40), hostClass: "local", gpus: 1, replicas: 1 } }
const candidate = { run: otherDeployment, pod: "dep-candidate-engine-0", gpus: 1, until: 15 * minute, inPlace: true }
const holds = ` The model's verified candidate (${otherDeployment}) holds 1 GPU until 1970-01-01T00:15:00.000Z, the end of its hold time. To free these GPUs sooner, delete the pod dep-candidate-engine-0. The weights and the revision stay.`
const unplaced = { ...pod, ready: false, scheduled: false, started: false, unschedulable: { since: 0, message: "0/1 nodes" } }
const gated = { ...unplaced, unschedulable: null, gated: true }

const serving: Partial<Run> = { ...withRevision({ status: "active", checks: report }), endedAt: 0 }
const endpoints = [{ url: pod.url ?? "", pod: pod.name, reachable: true }]
const held = (seconds: number): Partial<Run> => {
  const run = withRevision({ status: "active", checks: report })
  const { revision } = run
  if (revision == null) throw new Error("no revision")
  return { endedAt: 0, endpoints, revision: { ...revision, settings: { ...revision.settings, hold_seconds: seconds } } }
}

type Case = readonly [promise: string, observation: Observation, now: number, expected: string, said?: string]

const tables: Record<string, ReadonlyArray<Case>> = {
  "what it waits for, in words": [
    [
      "the organization's limit",
      observationOf("waiting", { organizationGpus: 4 }, { gpuLimit: 4 }),
      0,
      "",
      "The deployment waits for room under the organization's limit of 4 GPUs. It needs 1. The organization uses or has requested 4."
    ],
    [
      "an administrator, if the organization's limit can never admit it",
      observationOf("waiting", {}, { gpuLimit: 0 }),
      0,
      "",
      "The deployment waits for an administrator. Its engine needs 1 GPU, but the organization may hold only 0 at once. Raise the limit with seatrial admin limits set."
    ],
    [
      "its place, and another host class that has room for it",
      observationOf("queued", { ...full, nodeGpus: 8, roomOn: { name: "h200", freeGpus: 4, sameStore: true } }),
      0,
      "",
      "The deployment waits for 1 GPU of simulated: first in the queue. Class local has 0 of 8 GPUs free. Host class h200 has 4 free GPUs, and the model fits there. To use this class, cancel this deployment and deploy again with `host_class: [local, h200]` or `host_class: any`."
    ],
    [
      "another host class that has room for it, with its own weights store",
      observationOf("queued", { ...full, nodeGpus: 8, roomOn: { name: "h200", freeGpus: 4, sameStore: false } }),
      0,
      "",
      "The deployment waits for 1 GPU of simulated: first in the queue. Class local has 0 of 8 GPUs free. Host class h200 has 4 free GPUs, and the model fits there. To use this class, cancel this deployment and deploy again with `host_class: h200`."
    ],
    ["the first in the queue", observationOf("queued", full), 0, "", "The deployment waits for 1 GPU of simulated: first in the queue."],
    [
      "its place, updated now and then if many go first",
      observationOf("queued", { freeSlots: 1, ahead: 300 }),
      0,
      `again ${10 * minute}`,
      "The deployment waits for 1 GPU of simulated: 300 deployments go first."
    ],
    ["its place", observationOf("queued", { freeSlots: 1, ahead: 3 }), 0, "", "The deployment waits for 1 GPU of simulated: 3 deployments go first."],
    [
      "reserved GPUs",
      observationOf("queued", { ...full, setAside: true }),
      0,
      "",
      "The deployment waits for 1 GPU of simulated: first in the queue. The free GPUs are reserved for other organizations."
    ],
    [
      "its own model's candidate, if that holds GPUs that the run could have",
      observationOf("queued", { ...full, candidates: [candidate] }),
      0,
      "",
      `The deployment waits for 1 GPU of simulated: first in the queue.${holds}`
    ],
    [
      "and no candidate elsewhere",
      observationOf("queued", { ...full, candidates: [{ ...candidate, inPlace: false }] }),
      0,
      "",
      "The deployment waits for 1 GPU of simulated: first in the queue."
    ],
    [
      "a candidate on any class, if that counts toward its organization's limit",
      observationOf("waiting", { organizationGpus: 1, candidates: [{ ...candidate, inPlace: false }] }, { gpuLimit: 1 }),
      0,
      "",
      `The deployment waits for room under the organization's limit of 1 GPU. It needs 1. The organization uses or has requested 1.${holds}`
    ],
    [
      "its own model's candidate in Kueue's queue",
      observationOf("queued", { podClass: kueue, pod: gated, admission: "insufficient unused quota for nvidia.com/gpu", candidates: [candidate] }),
      0,
      "again 20000",
      `The deployment waits in Kueue's queue gpus: insufficient unused quota for nvidia.com/gpu.${holds}`
    ],
    [
      "engines of several nodes, which nothing can use yet",
      observationOf("queued", { podClass: { ...podClass, nodes: 2 } }),
      0,
      "",
      "The deployment waits for a change of the host class local, which has `nodes: 2`. Seatrial supports only `nodes: 1`."
    ]
  ],
  "from zero, where nodes come when a pod asks for them,": [
    [
      "the first in the queue requests a node",
      observationOf("queued", { ...full, podClass: scaling }),
      0,
      "enter provisioning",
      "The deployment requests a node: none has 1 GPU of simulated free."
    ],
    [
      "so does one whose weights have just come",
      observationOf("materializing", { ...full, podClass: scaling, fetch: ObservedFetch.Succeeded() }),
      0,
      "NoteWeights, RemoveFetch, enter provisioning"
    ],
    [
      "the next waits until that one has its node",
      observationOf("queued", { ...full, podClass: scaling, requestedEngines: 1 }),
      0,
      "",
      "The deployment waits for 1 GPU of simulated: first in the queue. 1 other engine has already requested a node and gets it before this deployment."
    ],
    [
      "and the next waits for several",
      observationOf("queued", { ...full, podClass: scaling, requestedEngines: 2 }),
      0,
      "",
      "The deployment waits for 1 GPU of simulated: first in the queue. 2 other engines have already requested nodes and get them before this deployment."
    ],
    ["a run that is not first waits", observationOf("queued", { ...full, podClass: scaling, ahead: 1 }), 0, ""],
    [
      "no node is requested beyond the limit of the class",
      observationOf("queued", { ...full, podClass: { ...scaling, maxGpus: 4 }, classGpus: 4 }),
      0,
      "",
      "The deployment waits for 1 GPU of simulated: first in the queue. The host class is limited to 4 GPUs."
    ],
    ["up to the limit nodes are requested", observationOf("queued", { ...full, podClass: { ...scaling, maxGpus: 4 }, classGpus: 3 }), 0, "enter provisioning"],
    [
      "a pod that finds no node has not failed, however long that takes",
      observationOf("provisioning", { ...full, podClass: scaling, pod: unplaced }),
      10 * 60 * minute,
      "",
      "No node can take the engine yet, and the cluster's autoscaler may be adding one: 0/1 nodes"
    ],
    ["a host class without an autoscaler makes no pod that cannot be placed", observationOf("queued", full), 0, ""]
  ],
  "in Kueue's queue": [
    [
      "a run requests its pod at once",
      observationOf("queued", { ...full, podClass: kueue }),
      0,
      "EnsurePod",
      "The deployment requests GPUs from Kueue's queue gpus."
    ],
    [
      "free GPUs alone do not let it through",
      observationOf("materializing", { podClass: kueue, fetch: ObservedFetch.Succeeded() }),
      0,
      "NoteWeights, RemoveFetch, enter queued"
    ],
    [
      "a pod that is held back waits",
      observationOf("queued", { podClass: kueue, pod: gated }),
      0,
      "again 20000",
      "The deployment waits in Kueue's queue gpus."
    ],
    [
      "in Kueue's own words",
      observationOf("queued", { podClass: kueue, pod: gated, admission: "insufficient unused quota for nvidia.com/gpu" }),
      0,
      "again 20000",
      "The deployment waits in Kueue's queue gpus: insufficient unused quota for nvidia.com/gpu"
    ],
    ["a run continues once its pod is admitted", observationOf("queued", { podClass: kueue, pod: unplaced }), 0, "enter provisioning"],
    [
      "a pod that ran before the run returned to the queue is deleted",
      observationOf("queued", { podClass: kueue, pod }, { phaseSince: 5_000 }),
      9_000,
      "remove pod pod-1"
    ],
    [
      "a pod that starts during the pass continues",
      observationOf("queued", { podClass: kueue, pod: { ...pod, scheduledAt: 5_000 } }, { phaseSince: 5_400 }),
      9_000,
      "enter provisioning"
    ],
    ["and is no failure if it is still unschedulable", observationOf("provisioning", { ...full, podClass: kueue, pod: unplaced }), 10 * 60 * minute, ""],
    ["one whose place was taken queues again with its pod", observationOf("provisioning", { podClass: kueue, pod: gated }), 0, "enter queued"],
    ["at most three times", observationOf("provisioning", { podClass: kueue, pod: gated }, { requeues: 3 }), 0, "keep log, enter failed capacity_lost"],
    ["the organization's limit comes first", observationOf("waiting", { podClass: kueue, organizationGpus: 1 }, { gpuLimit: 1 }), 0, ""]
  ],
  "capacity that is lost": [
    ...[0, 1, 2].flatMap(
      (requeues): ReadonlyArray<Case> => [
        [
          `in provisioning after ${requeues} requeues queues again`,
          observationOf("provisioning", { pod: { ...pod, lost: "evicted" } }, { requeues }),
          0,
          "remove pod pod-1 by force, enter queued"
        ],
        [
          `in booting after ${requeues} requeues queues again`,
          observationOf("booting", { pod: { ...pod, lost: "evicted" } }, { requeues }),
          0,
          "remove pod pod-1 by force, enter queued"
        ],
        [`with its pod, in booting after ${requeues} requeues`, observationOf("booting", {}, { requeues }), 0, "enter queued"]
      ]
    ),
    [
      "in booting ends the run the fourth time",
      observationOf("booting", { pod: { ...pod, lost: "evicted" } }, { requeues: 3 }),
      0,
      "keep log, enter failed capacity_lost"
    ],
    [
      "did not exist if the pod never had a node: it queues again, however often",
      observationOf("provisioning", { ...full, pod: unplaced }, { requeues: 3 }),
      10 * minute,
      "remove pod pod-1, enter queued"
    ],
    [
      "nor if it was preempted before it had one",
      observationOf("provisioning", { pod: { ...unplaced, unschedulable: null, lost: "Preempted" } }, { requeues: 3 }),
      0,
      "remove pod pod-1 by force, enter queued"
    ],
    [
      "is not assumed while a node seems to have room: the pod waits for it, and the message names the cause",
      observationOf("provisioning", { pod: unplaced, hasUncountedPods: true }),
      10 * minute,
      "",
      "No node can take the engine yet: 0/1 nodes As far as the operator can see, a node has enough free GPUs. But pods in other namespaces may hold them. The operator counts those pods only if OPERATOR_COUNT_ALL_PODS is true."
    ],
    [
      "is not assumed, and other namespaces are not blamed, if the pod lacks something else",
      observationOf("provisioning", { pod: unplaced }),
      10 * minute,
      "",
      "No node can take the engine yet: 0/1 nodes"
    ],
    ["in the trial is requested again, without a requeue", observationOf("checking", { pod: null }), 0, "EnsurePod"]
  ],
  "a roll-out without a spare GPU": [
    [
      "says so if it waits, and what to do",
      observationOf("queued", { ...full, predecessorHolds: true }, predecessor),
      0,
      "",
      `The deployment waits for 1 GPU of simulated: first in the queue. The serving revision of this model (${otherDeployment}) holds 1 GPU. The host class local has \`rollout: surge\`, so the new revision waits for other free GPUs. Free some GPUs, or set \`rollout: replace\`. Then the serving revision stops first.`
    ],
    [
      "says so if the serving revision exhausts the organization's limit",
      observationOf("waiting", { predecessorHolds: true, organizationGpus: 1 }, { ...predecessor, gpuLimit: 1 }),
      0,
      ""
    ],
    [
      "takes its predecessor's GPUs if the class says replace",
      observationOf("queued", { ...full, podClass: replacing, predecessorHolds: true }, predecessor),
      0,
      "enter provisioning replacing",
      `No other GPUs of simulated are free. The deployment ${otherDeployment} is stopped, and this deployment uses its GPUs. The model is unavailable until the new revision is ready.`
    ],
    [
      "but only once its weights are complete",
      observationOf("materializing", { ...full, podClass: replacing, predecessorHolds: true }, predecessor),
      0,
      "EnsureFetch"
    ],
    [
      "and then at once",
      observationOf("materializing", { ...full, podClass: replacing, predecessorHolds: true, fetch: ObservedFetch.Succeeded() }, predecessor),
      0,
      "NoteWeights, RemoveFetch, enter provisioning replacing"
    ],
    [
      "takes them if its predecessor has no traffic because its answers differ from the verified ones",
      observationOf(
        "queued",
        { ...full, predecessorHolds: true },
        { predecessor: { run: otherDeployment, commit: "b".repeat(40), hostClass: "local", gpus: 1, replicas: 1, differs: true } }
      ),
      0,
      "enter provisioning replacing",
      `No other GPUs of simulated are free. The deployment ${otherDeployment} is stopped, and this deployment uses its GPUs. ${otherDeployment} had no traffic, because its answers differ from the verified ones.`
    ],
    ["takes a spare GPU first", observationOf("queued", { podClass: replacing, predecessorHolds: true }, predecessor), 0, "enter provisioning"],
    [
      "requests a node first, with autoscaling",
      observationOf("queued", { ...full, podClass: { ...replacing, autoscaling: true }, predecessorHolds: true }, predecessor),
      0,
      "enter provisioning"
    ],
    ["replaces nothing that holds no GPUs", observationOf("queued", { ...full, podClass: replacing }, predecessor), 0, ""],
    [
      "replaces nothing of another host class",
      observationOf(
        "queued",
        { ...full, podClass: replacing, predecessorHolds: true },
        { predecessor: { run: otherDeployment, commit: "b".repeat(40), hostClass: "other", gpus: 1, replicas: 1 } }
      ),
      0,
      ""
    ],
    [
      "replaces nothing for a candidate that is not to serve",
      observationOf("queued", { ...full, podClass: replacing, predecessorHolds: true }, { ...predecessor, serve: false }),
      0,
      ""
    ],
    [
      "waits for the older run of the model first",
      observationOf("waiting", { ...full, podClass: replacing, predecessorHolds: true }, { ...predecessor, olderRun: otherDeployment }),
      0,
      ""
    ],
    [
      "replaces the serving revision if the limit has no room for both",
      observationOf("waiting", { podClass: replacing, predecessorHolds: true, organizationGpus: 1 }, { ...predecessor, gpuLimit: 1 }),
      0,
      "enter provisioning replacing"
    ],
    [
      "but not beyond a limit that has become smaller",
      observationOf("waiting", { podClass: replacing, predecessorHolds: true, organizationGpus: 3 }, { ...predecessor, gpuLimit: 1 }),
      0,
      ""
    ],
    [
      "waits for the last requests of the revision that it replaces, however long",
      observationOf("provisioning", { ...full, podClass: replacing, predecessorHolds: true, pod: unplaced }, { ...predecessor, replaces: true }),
      50 * minute,
      "",
      `The deployment waits until ${otherDeployment} has finished its requests and released its GPUs.`
    ],
    [
      "returns to the queue if another run took the GPUs",
      observationOf("provisioning", { ...full, podClass: replacing, pod: unplaced }, { ...predecessor, replaces: true }),
      50 * minute,
      "remove pod pod-1, enter queued"
    ]
  ],
  "what serves and is replaced": [
    ["is drained", observationOf("activated", { pod }, { ...serving, endpoints, replacedBy: otherDeployment }), 0, "publish nothing, again 10000"],
    [
      "gateways have time to hear of it",
      observationOf("activated", { pod, withdrawnAt: 0 }, { ...serving, replacedBy: otherDeployment }),
      9_999,
      "again 10000"
    ],
    [
      "its requests end",
      observationOf("activated", { pod, withdrawnAt: 0 }, { ...serving, replacedBy: otherDeployment, inFlight: 1 }),
      minute,
      `again ${minute + 5_000}`
    ],
    ["then its GPUs are free", observationOf("activated", { pod, withdrawnAt: 0 }, { ...serving, replacedBy: otherDeployment }), 10_000, "remove pod pod-1"],
    [
      "it stays down while the other is on trial, and says so",
      observationOf("activated", {}, { ...serving, replacedBy: otherDeployment }),
      minute,
      "",
      `The engine's GPUs went to the replacement, ${otherDeployment}. The engine starts again if that deployment fails.`
    ],
    ["it returns if the other run fails or is canceled", observationOf("activated", {}, serving), minute, "EnsurePod"]
  ],
  "a served model with hold_seconds": [
    ["serves while it is used", observationOf("activated", { pod }, { ...held(60), lastUsedAt: 100_000 }), 110_000, "again 170000"],
    [
      "becomes idle after that time without requests",
      observationOf("activated", { pod }, { ...held(60), lastUsedAt: 100_000 }),
      170_000,
      "publish nothing, again 180000"
    ],
    ["not under a request", observationOf("activated", { pod }, { ...held(60), lastUsedAt: 0, inFlight: 1 }), 170_000, "again 200000"],
    ["drains like any other", observationOf("activated", { pod, withdrawnAt: 170_000 }, { ...held(60), endpoints: [] }), 180_000, "remove pod pod-1"],
    [
      "a request in between keeps it",
      observationOf("activated", { pod, withdrawnAt: 170_000 }, { ...held(60), endpoints: [], lastUsedAt: 175_000 }),
      176_000,
      "publish http://127.0.1.1:8000, again 245000"
    ],
    [
      "stays idle while it gets no requests, also for a new operator",
      observationOf("activated", { leadingSince: 200_000 }, { ...held(60), endpoints: [] }),
      200_000,
      "",
      "Idle: the model had no requests for a while. The next request starts its engine."
    ],
    [
      "comes back with the next request",
      observationOf("activated", {}, { ...held(60), endpoints: [], lastUsedAt: 300_000 }),
      300_000,
      "EnsurePod, again 370000"
    ],
    [
      "is idle to a later run of its revision too, which did not wake it",
      observationOf("activated", {}, { ...held(60), engineRun: otherDeployment, lastUsedAt: 100_000, endedAt: 290_000, endpoints: [] }),
      300_000,
      "",
      "Idle: the model had no requests for a while. The next request starts its engine."
    ],
    [
      "an engine that is on its way is let come",
      observationOf("activated", { pod: { ...pod, ready: false } }, { ...held(1), endpoints: [] }),
      300_000,
      "again 330000"
    ],
    [
      "an unschedulable engine is not",
      observationOf("activated", { pod: unplaced, withdrawnAt: 0 }, { ...held(1), endpoints: [] }),
      300_000,
      "remove pod pod-1"
    ],
    [
      "stays long enough for its caller to retry",
      observationOf("activated", { pod: { ...pod, readyChangedAt: 300_000 } }, { ...held(0), endpoints }),
      310_000,
      "again 315000"
    ],
    ["a new operator does not take it for unused at once", observationOf("activated", { pod, leadingSince: 500_000 }, held(60)), 500_000, "again 570000"],
    ["without it, a model is never idle", observationOf("activated", { pod }, { ...serving, endpoints }), 365 * 24 * 60 * minute, ""]
  ],
  "the disruption budget of an engine": [
    ["exists while it serves", observationOf("activated", { pod, podClass: { ...podClass, evictable: false } }, { ...serving, endpoints }), 0, "EnsureBudget"],
    ["once", observationOf("activated", { pod, podClass: { ...podClass, evictable: false }, budget: "intact" }, { ...serving, endpoints }), 0, ""],
    [
      "is corrected if someone has edited it",
      observationOf("activated", { pod, podClass: { ...podClass, evictable: false }, budget: "edited" }, { ...serving, endpoints }),
      0,
      "EnsureBudget"
    ],
    [
      "does not exist if the class lets engines be evicted",
      observationOf("activated", { pod, budget: "intact" }, { ...serving, endpoints }),
      0,
      "RemoveBudget"
    ],
    [
      "not during a trial",
      observationOf("checking", { pod, podClass: { ...podClass, evictable: false }, work: { running: "checking", ended: null } }),
      0,
      "work checking"
    ],
    [
      "is deleted before its engine is drained",
      observationOf(
        "activated",
        { pod, podClass: { ...podClass, evictable: false }, budget: "intact" },
        { ...withRevision({ status: "superseded" }), endpoints }
      ),
      0,
      "RemoveBudget, publish nothing, again 10000"
    ],
    [
      "is deleted with a failed run",
      observationOf("failed", { budget: "intact" }, { failure: { code: "x", text: "y" }, endedAt: 0 }),
      0,
      "RemoveBudget, remove pod, RemoveFetch"
    ],
    ["stays if its host class is gone", observationOf("activated", { pod, podClass: null, budget: "intact" }, { ...serving, endpoints }), 0, ""]
  ]
}

for (const [name, cases] of Object.entries(tables)) {
  describe(name, () => {
    for (const [promise, observation, now, expected, said] of cases) {
      it(promise, () => {
        const decision = decide(observation, now)
        assert.strictEqual(words(decision), expected)
        if (said !== undefined) assert.strictEqual(decision.message, said)
      })
    }
  })
}
