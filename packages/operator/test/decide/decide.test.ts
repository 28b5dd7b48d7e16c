import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { decide } from "../../src/decide/decide.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import type { WorkEnded } from "../../src/observation/work.ts"
import { benchmark, measured, observationOf, otherDeployment, pod, podClass, report, run, step, url, withRevision } from "../observations.ts"
import { words } from "./words.ts"

const minute = 60_000
const hour = 60 * minute

const unavailable = (kind: WorkEnded["kind"], attempts: number, at: number, byRepository = false, since = 0): Partial<Observation> => ({
  work: { running: null, ended: { kind, about: "0", attempts, at, since, failure: null, message: "The model hub cannot be reached.", byRepository } }
})
const busy = (running: WorkEnded["kind"]): Partial<Observation> => ({ work: { running, ended: null } })
const serving: Partial<Run> = { ...withRevision({ status: "active", checks: report }), endedAt: 0 }
const endpoint = { url, pod: pod.name, reachable: false }
const reached = { ...endpoint, reachable: true }
const shown = (phase: Run["phase"]) => ({ uid: "mdep-1", shownPhase: phase })
const theirs = { namespace: "seatrial", name: "tiny", current: { uid: "mdep-1", generation: 1, namesModel: false } }
const unready = { ...pod, ready: false }
/** Terminating on an unresponsive node: no kubelet confirms its end. */
const stuck = { ...unready, deleting: true, nodeDownSince: 0 }
const died = { ...unready, restarts: 2, lastExit: { code: 1, reason: "Error" } }

const tables: Record<string, ReadonlyArray<readonly [promise: string, observation: Observation, now: number, expected: string]>> = {
  screening: [
    ["a new run is read from the hub", observationOf("screening", {}, { revision: null }), 0, "work screening"],
    ["a run whose first pass comes late is read from the hub all the same", observationOf("screening", {}, { revision: null }), hour, "work screening"],
    [
      "the hub has its time from the first failed attempt",
      observationOf("screening", unavailable("screening", 3, hour, false, hour - minute), { revision: null }),
      hour + 5_000,
      "work screening"
    ],
    ["a run without its custom resource gets one", observationOf("screening", { resource: null }, { revision: null }), 0, "EnsureResource, work screening"],
    ["recorded facts end screening", observationOf("screening"), 0, "enter materializing"],
    ["complete weights need no download", observationOf("screening", { weights: { own: false } }), 0, "enter provisioning"],
    ["nor do they free a GPU", observationOf("screening", { weights: { own: false }, freeSlots: 0 }), 0, "enter queued"],
    ["the organization's turn counts all the same", observationOf("screening", { weights: { own: false } }, { olderRun: otherDeployment }), 0, "enter waiting"],
    [
      "a refusal fails the run with the preview's own code",
      observationOf(
        "screening",
        {
          work: {
            running: null,
            ended: { kind: "screening", about: "0", attempts: 1, at: 0, failure: { code: "does_not_fit", text: "No." }, message: "", byRepository: false }
          }
        },
        { revision: null }
      ),
      0,
      "keep log, enter failed does_not_fit"
    ],
    [
      "an applied object is not created again for that: a new one would be a request to try again",
      observationOf("screening", { ...unavailable("screening", 9, 10 * minute), resource: null }, { revision: null, applied: theirs }),
      10 * minute,
      "keep log, enter failed hub_unavailable"
    ],
    ["an unreachable hub is retried after a pause", observationOf("screening", unavailable("screening", 1, 500), { revision: null }), 600, "again 1500"],
    ["the pause ends", observationOf("screening", unavailable("screening", 1, 500), { revision: null }), 1500, "work screening"],
    ["pauses grow, up to half a minute", observationOf("screening", unavailable("screening", 9, 1000), { revision: null }), 1000, "again 31000"],
    ["waiting for a turn to read does not end the run", observationOf("screening", unavailable("screening", 1, 0), { revision: null }), hour, "work screening"],
    [
      "a hub that stays unreachable ends the run at its deadline",
      observationOf("screening", unavailable("screening", 9, 10 * minute), { revision: null }),
      10 * minute,
      "keep log, enter failed hub_unavailable"
    ]
  ],
  materializing: [
    ["a download is started once", observationOf("materializing"), 0, "EnsureFetch"],
    [
      "no download is needed if another one has fetched the files in that time",
      observationOf("materializing", { weights: { own: true } }),
      0,
      "enter provisioning"
    ],
    [
      "a running download is left alone, and its progress is read again later",
      observationOf("materializing", { fetch: ObservedFetch.Active({ obstacle: null, progress: null }) }),
      0,
      "again 10000"
    ],
    [
      "a download with an outdated address of the hub is replaced",
      observationOf("materializing", { fetch: ObservedFetch.Active({ obstacle: null, progress: null, outdated: true }) }),
      0,
      "RemoveFetch"
    ],
    [
      "a corrupted download fails in materializing and says so",
      observationOf("materializing", { fetch: ObservedFetch.Failed({ failure: { code: "weights_mismatch", text: "2 of 14" }, endedAt: null }) }),
      0,
      "keep log, enter failed weights_mismatch"
    ],
    [
      "verified weights go straight to free GPUs",
      observationOf("materializing", { fetch: ObservedFetch.Succeeded() }),
      0,
      "NoteWeights, RemoveFetch, enter provisioning"
    ],
    [
      "without free GPUs it queues",
      observationOf("materializing", { fetch: ObservedFetch.Succeeded(), freeSlots: 0 }),
      0,
      "NoteWeights, RemoveFetch, enter queued"
    ],
    [
      "an older run of the model goes first",
      observationOf("materializing", { fetch: ObservedFetch.Succeeded() }, { olderRun: otherDeployment }),
      0,
      "NoteWeights, RemoveFetch, enter waiting"
    ]
  ],
  "while its host class is gone": [
    ["nothing is downloaded to an unknown store", observationOf("materializing", { podClass: null }), 0, ""],
    ["and nothing is recorded for it", observationOf("materializing", { podClass: null, fetch: ObservedFetch.Succeeded() }), 0, ""],
    ["and no lost weights are downloaded to it", observationOf("booting", { podClass: null, pod: { ...unready, restarts: 2 } }), 0, ""],
    ["the trial waits for it", observationOf("checking", { podClass: null, pod }), 0, ""],
    [
      "and its running work continues",
      observationOf("checking", { podClass: null, pod, sameStart: true, work: { running: "checking", ended: null } }),
      0,
      "work checking"
    ]
  ],
  "waiting and queued": [
    ["waits while the older run is unfinished", observationOf("waiting", {}, { olderRun: otherDeployment }), 0, ""],
    ["its turn comes", observationOf("waiting"), 0, "enter provisioning"],
    ["its turn comes, but no GPU is free", observationOf("waiting", { freeSlots: 0 }), 0, "enter queued"],
    ["queues while runs that go first need all free GPUs", observationOf("queued", { freeSlots: 2, ahead: 2 }), 0, ""],
    ["continues if there is room behind the runs that go first", observationOf("queued", { freeSlots: 3, ahead: 2 }), 0, "enter provisioning"],
    ["a host class that is gone is waited for", observationOf("queued", { podClass: null }), 0, ""],
    ["an engine left by a crash is removed before it queues on", observationOf("queued", { freeSlots: 0, pod }), 0, "remove pod pod-1"],
    ["a place is not taken while the earlier engine is leaving", observationOf("queued", { pod: { ...pod, deleting: true } }), 0, ""],
    ["but one whose node fell silent on the way never leaves by itself", observationOf("queued", { pod: stuck }), hour, "remove pod pod-1 by force"],
    ["also in Kueue's queue", observationOf("queued", { pod: stuck, podClass: { ...podClass, queueName: "gpus" } }), hour, "remove pod pod-1 by force"],
    [
      "nor while the organization's turn is waited for",
      observationOf("waiting", { pod: stuck }, { olderRun: otherDeployment }),
      hour,
      "remove pod pod-1 by force"
    ]
  ],
  provisioning: [
    ["requests its pod", observationOf("provisioning"), 0, "EnsurePod"],
    ["continues once the container runs", observationOf("provisioning", { pod: unready }), 0, "enter booting"],
    ["waits for an earlier engine that is leaving", observationOf("provisioning", { pod: { ...pod, deleting: true } }), 0, ""],
    [
      "which is never replaced for its name alone if its node stopped responding",
      observationOf("provisioning", { pod: stuck }),
      hour,
      "remove pod pod-1 by force"
    ],
    [
      "a pod that finds no node is given patience",
      observationOf("provisioning", { freeSlots: 0, pod: { ...unready, scheduled: false, started: false, unschedulable: { since: 0, message: "0/1 nodes" } } }),
      14_999,
      "again 15000"
    ],
    [
      "a run whose capacity was taken returns to the queue",
      observationOf("provisioning", { freeSlots: 0, pod: { ...unready, scheduled: false, started: false, unschedulable: { since: 0, message: "0/1 nodes" } } }),
      15_000,
      "remove pod pod-1, enter queued"
    ],
    [
      "no node yet is no failure while there is capacity",
      observationOf("provisioning", { freeSlots: 1, pod: { ...unready, scheduled: false, started: false, unschedulable: { since: 0, message: "0/1 nodes" } } }),
      60 * minute,
      ""
    ],
    [
      "the fourth loss ends the run, and does not blame the model",
      observationOf("provisioning", { pod: { ...pod, lost: "evicted" } }, { requeues: 3 }),
      0,
      "keep log, enter failed capacity_lost"
    ],
    [
      "an image that cannot be named fails at once",
      observationOf("provisioning", { pod: { ...unready, started: false, blocked: "InvalidImageName" } }),
      0,
      "keep log, enter failed image_unavailable"
    ],
    [
      "an image that cannot be pulled is given two minutes",
      observationOf("provisioning", { pod: { ...unready, started: false, blocked: "ImagePullBackOff" } }),
      minute,
      `again ${2 * minute}`
    ],
    [
      "and then named as the cause",
      observationOf("provisioning", { pod: { ...unready, started: false, blocked: "ImagePullBackOff" } }),
      2 * minute,
      "keep log, enter failed image_unavailable"
    ],
    [
      "a pull that fails after a long time gets the deadline too",
      observationOf("provisioning", { blockedSince: 9 * minute, pod: { ...unready, started: false, blocked: "ErrImagePull" } }),
      10 * minute,
      `again ${11 * minute}`
    ],
    [
      "and so is one on a node that came late",
      observationOf("provisioning", { pod: { ...unready, started: false, scheduledAt: 40 * minute, blocked: "ErrImagePull" } }),
      41 * minute,
      `again ${42 * minute}`
    ],
    [
      "the time that it took to come by a node does not count",
      observationOf("provisioning", { pod: { ...unready, started: false, scheduledAt: 40 * minute } }),
      41 * minute,
      `again ${70 * minute}`
    ],
    [
      "a pod without a node and without a reason is waited for, with a pause between passes",
      observationOf("provisioning", { pod: { ...unready, scheduled: false, started: false } }),
      31 * minute,
      ""
    ],
    [
      "a node that never starts the container fails the run",
      observationOf("provisioning", { pod: { ...unready, started: false } }),
      30 * minute,
      "keep log, enter failed provisioning_timeout"
    ]
  ],
  booting: [
    ["waits for the engine's own readiness", observationOf("booting", { pod: unready }), 0, `again ${10 * minute}`],
    ["a ready engine is checked", observationOf("booting", { pod }), 10 * minute, "enter checking"],
    [
      "an engine that never becomes ready fails at its deadline",
      observationOf("booting", { pod: unready }),
      10 * minute,
      "keep log, enter failed boot_timeout"
    ],
    [
      "the deadline is the host class's own",
      observationOf("booting", { pod: unready, podClass: { ...podClass, bootDeadlineSeconds: 5 } }),
      5_000,
      "keep log, enter failed boot_timeout"
    ],
    [
      "an engine that left with 0 failed all the same",
      observationOf("booting", { weights: { own: true }, pod: { ...unready, restarts: 2, lastExit: { code: 0, reason: "Completed" } } }),
      0,
      "keep log, enter failed engine_start_failed"
    ],
    [
      "an engine that does not start with weights of an earlier download has the store checked first",
      observationOf("booting", { weights: { own: false }, pod: died }),
      0,
      "ForgetWeights, EnsureFetch"
    ],
    ["also after a crash in between", observationOf("booting", { pod: died }), 0, "EnsureFetch"],
    ["it waits for that download", observationOf("booting", { pod: died, fetch: ObservedFetch.Active({ obstacle: null, progress: null }) }), 0, "again 10000"],
    [
      "is started again once everything is complete",
      observationOf("booting", { pod: died, fetch: ObservedFetch.Succeeded() }),
      0,
      "remove pod pod-1, NoteWeights, RemoveFetch"
    ],
    [
      "fails as that download does",
      observationOf("booting", { pod: died, fetch: ObservedFetch.Failed({ failure: { code: "weights_mismatch", text: "2 of 14" }, endedAt: null }) }),
      0,
      "keep log, enter failed weights_mismatch"
    ],
    [
      "and fails with its own failure if its weights are complete and it dies again",
      observationOf("booting", { weights: { own: true }, pod: died }),
      0,
      "keep log, enter failed engine_start_failed"
    ],
    ["one exit is forgiven", observationOf("booting", { pod: { ...unready, restarts: 1, lastExit: { code: 1, reason: "Error" } } }), 0, `again ${10 * minute}`],
    [
      "an engine that dies while booting is named by its log",
      observationOf("booting", {
        bootLog: "No available memory for the cache blocks",
        pod: { ...unready, restarts: 2, lastExit: { code: 1, reason: "Error" } }
      }),
      0,
      "keep log, enter failed out_of_memory"
    ],
    [
      "a killed engine is named by the kernel's reason",
      observationOf("booting", { pod: { ...unready, restarts: 2, lastExit: { code: 137, reason: "OOMKilled" } } }),
      0,
      "keep log, enter failed out_of_memory"
    ],
    [
      "a container that was started again has the whole time again",
      observationOf("booting", { pod: { ...unready, restarts: 1, startedAt: 9 * minute } }),
      10 * minute,
      `again ${19 * minute}`
    ],
    [
      "restarts of its node are not held against it",
      observationOf("booting", { pod: { ...unready, restarts: 2, startedAt: 0, lastExit: { code: 255, reason: "Unknown" } } }),
      0,
      `again ${10 * minute}`
    ],
    [
      "an engine that dies on a card that failed does not blame the model",
      observationOf("booting", { pod: { ...unready, restarts: 2, lastExit: { code: 1, reason: "Error" }, gpuFault: true } }),
      0,
      "NoteNodeFault, enter queued"
    ],
    [
      "but not forever",
      observationOf("booting", { pod: { ...unready, restarts: 2, lastExit: { code: 1, reason: "Error" }, gpuFault: true } }, { requeues: 3 }),
      0,
      "keep log, enter failed node_fault"
    ],
    [
      "nor if the engine names its own cause",
      observationOf("booting", {
        bootLog: "No available memory for the cache blocks",
        pod: { ...unready, restarts: 2, lastExit: { code: 1, reason: "Error" }, gpuFault: true }
      }),
      0,
      "keep log, enter failed out_of_memory"
    ],
    ["a pod that was deleted does not blame the model", observationOf("booting"), 0, "enter queued"],
    [
      "a lost node does not blame the model",
      observationOf("booting", { pod: { ...unready, lost: "its node is gone" } }),
      0,
      "remove pod pod-1 by force, enter queued"
    ]
  ],
  trial: [
    ["a ready engine is checked", observationOf("checking", { pod }), 0, "work checking"],
    ["the phase and its work are one: other work stops", observationOf("checking", { pod, work: { running: "screening", ended: null } }), 0, "work checking"],
    ["an engine that restarts is waited for", observationOf("checking", { pod: unready }), 0, `again ${10 * minute}`],
    [
      "an engine that only answers its probes late is busy with its checks, which continue",
      observationOf("checking", { pod: unready, ...busy("checking"), sameStart: true }),
      0,
      "work checking"
    ],
    ["so does its benchmark", observationOf("benchmarking", { pod: unready, ...busy("benchmarking"), sameStart: true }), 0, "work benchmarking"],
    ["the checks of an engine that has restarted end", observationOf("checking", { pod: unready, ...busy("checking") }), 0, `again ${10 * minute}`],
    [
      "also for longer than it may take to start: its own exchanges show whether it hangs",
      observationOf("checking", { pod: unready, ...busy("checking"), sameStart: true }),
      60 * minute,
      "work checking"
    ],
    [
      "an engine that was evicted waits for a node that may be on its way",
      observationOf("checking", { podClass: { ...podClass, autoscaling: true }, pod: { ...unready, scheduled: false, scheduledAt: null, started: false } }),
      60 * minute,
      ""
    ],
    [
      "and in Kueue's queue, which holds it back again",
      observationOf("checking", { pod: { ...unready, scheduled: false, scheduledAt: null, started: false, gated: true } }),
      60 * minute,
      `again ${60 * minute + 20_000}`
    ],
    ["and then has the whole time to start", observationOf("checking", { pod: { ...unready, scheduledAt: 60 * minute } }), 61 * minute, `again ${70 * minute}`],
    ["an engine that does not come back fails the run", observationOf("checking", { pod: unready }), 10 * minute, "keep log, enter failed engine_lost"],
    [
      "time counts from when it stopped, not from the start of the phase",
      observationOf("checking", { pod: { ...unready, readyChangedAt: 9 * minute } }),
      10 * minute,
      `again ${19 * minute}`
    ],
    ["a pod lost during the trial is replaced", observationOf("checking"), 0, "EnsurePod"],
    ["passed checks are measured", observationOf("checking", { pod }, withRevision({ checks: report })), 0, "enter measuring"],
    [
      "a model that fails its checks never serves",
      observationOf("checking", { pod }, withRevision({ checks: { ...report, passed: false } })),
      0,
      "keep log, enter failed checks_failed"
    ],
    [
      "checks that timed out while the engine computed do not blame the model",
      observationOf(
        "checking",
        { pod },
        withRevision({
          checks: {
            ...report,
            passed: false,
            outcomes: [{ name: "template_agrees", class: "required", outcome: "timeout", isComputing: true }]
          }
        })
      ),
      0,
      "keep log, enter failed trial_unavailable"
    ],
    [
      "a withdrawn capability and drifted fingerprints are recorded as events and end nothing",
      observationOf(
        "checking",
        { pod },
        withRevision({ checks: { ...report, checks: [...report.checks, { name: "json_mode", passed: false }], withdrawn: ["json_mode"], drifted: 1 } })
      ),
      0,
      "RecordEvent, RecordEvent, enter measuring"
    ],
    ["checks that could not be run are tried again", observationOf("checking", { pod, ...unavailable("checking", 2, 0) }), 1_000, "again 2000"],
    [
      "three faults of ours are not blamed on the model",
      observationOf("checking", { pod, ...unavailable("checking", 3, 0) }),
      9_000,
      "keep log, enter failed trial_unavailable"
    ],
    [
      "a repository whose tokenizer or template is too much for its process is tried again too",
      observationOf("checking", { pod, ...unavailable("checking", 2, 0, true) }),
      1_000,
      "again 2000"
    ],
    [
      "and is blamed if it was the cause at every attempt",
      observationOf("checking", { pod, ...unavailable("checking", 3, 0, true) }),
      9_000,
      "keep log, enter failed tokenizer_unreadable"
    ],
    ["figures are read", observationOf("measuring", { pod }), 0, "work measuring"],
    [
      "a cache below one sequence fails",
      observationOf("measuring", { pod }, withRevision({ measured: { ...measured, kv_cache_tokens: 1023 } })),
      0,
      "keep log, enter failed kv_capacity"
    ],
    [
      "a cache with a layout that the estimate does not know is reported, and fails nothing",
      observationOf("measuring", { pod }, withRevision({ measured: { ...measured, kv_layout: { reported: 1_040, exact: 1_000, differs: true } } })),
      0,
      "RecordEvent, enter benchmarking"
    ],
    [
      "figures that the engine does not report fail nothing",
      observationOf("measuring", { pod }, withRevision({ measured: { ...measured, kv_cache_tokens: null } })),
      0,
      "enter benchmarking"
    ],
    ["load is measured", observationOf("benchmarking", { pod }), 0, "work benchmarking"],
    [
      "one error in a hundred is allowed",
      observationOf("benchmarking", { pod }, withRevision({ benchmark: { ...benchmark, steps: [{ ...step, requests: 99, errors: 1 }] } })),
      0,
      "enter activating"
    ],
    [
      "more errors are not",
      observationOf("benchmarking", { pod }, withRevision({ benchmark: { ...benchmark, steps: [{ ...step, requests: 98, errors: 1 }] } })),
      0,
      "keep log, enter failed benchmark_floor"
    ],
    [
      "a benchmark that could not be made fails nothing",
      observationOf("benchmarking", { pod }, withRevision({ benchmark: { ...benchmark, steps: [], missing: "time_limit" } })),
      0,
      "enter activating"
    ],
    ["a candidate that is not to serve ends here", observationOf("benchmarking", { pod }, { ...withRevision({ benchmark }), serve: false }), 0, "Activate"]
  ],
  activating: [
    ["the gateways hear of the engine first", observationOf("activating", { pod }), 0, `publish ${url}, again ${2 * minute}`],
    ["traffic waits until a gateway has reached it", observationOf("activating", { pod }, { endpoints: [endpoint] }), 0, `again ${2 * minute}`],
    ["a reached engine takes the traffic", observationOf("activating", { pod }, { endpoints: [{ ...endpoint, reachable: true }] }), 0, "Activate"],
    [
      "but not while its node is unresponsive: the serving engine may be the only healthy one",
      observationOf("activating", { pod: { ...pod, nodeDownSince: 0 } }, { endpoints: [{ ...endpoint, reachable: true }] }),
      59_999,
      "again 60000"
    ],
    ["nor is it published to gateways", observationOf("activating", { pod: { ...pod, nodeDownSince: 0 } }), 0, "again 60000"],
    [
      "an engine that returned on another node is published again",
      observationOf("activating", { pod }, { endpoints: [{ ...endpoint, url: "http://127.0.9.9:1", reachable: true }] }),
      0,
      `publish ${url}, again ${2 * minute}`
    ],
    ["however late that is noticed", observationOf("activating", { pod }, { endpoints: [{ ...endpoint, reachable: true }] }), 60 * minute, "Activate"],
    [
      "gateways have their time from when the engine is ready",
      observationOf("activating", { pod: { ...pod, readyChangedAt: minute } }, { endpoints: [endpoint] }),
      2 * minute,
      `again ${3 * minute}`
    ],
    [
      "an engine that is started again is waited for",
      observationOf("activating", { pod: unready }, { endpoints: [endpoint] }),
      2 * minute,
      `again ${10 * minute}`
    ],
    [
      "a gateway that never reaches it fails the run",
      observationOf("activating", { pod }, { endpoints: [endpoint] }),
      2 * minute,
      "keep log, enter failed gateway_unreachable"
    ]
  ],
  "activated and active": [
    ["a serving engine is published while it is ready", observationOf("activated", { pod }, serving), 0, `publish ${url}`],
    ["and written only on change", observationOf("activated", { pod }, { ...serving, endpoints: [reached] }), 0, ""],
    [
      "an engine that is not ready is withdrawn",
      observationOf("activated", { pod: unready }, { ...serving, endpoints: [endpoint] }),
      0,
      "publish nothing, again 600000"
    ],
    [
      "a hanging engine has as long to return as its class allows for a start",
      observationOf("activated", { pod: { ...unready, readyChangedAt: minute } }, serving),
      11 * minute - 1,
      `again ${11 * minute}`
    ],
    [
      "and is then replaced, with an event",
      observationOf("activated", { pod: { ...unready, readyChangedAt: minute } }, serving),
      11 * minute,
      "RecordEvent, remove pod pod-1"
    ],
    [
      "an engine that restarted in that time has its own deadline",
      observationOf("activated", { pod: { ...unready, startedAt: 5 * minute } }, serving),
      11 * minute,
      "again 900000"
    ],
    [
      "another would pull the same image",
      observationOf("activated", { pod: { ...unready, blocked: "ImagePullBackOff", started: false } }, serving),
      60 * minute,
      ""
    ],
    ["and nothing is removed that could not be started again", observationOf("activated", { pod: unready, podClass: null }, serving), 60 * minute, ""],
    ["a lost pod comes back", observationOf("activated", {}, { ...serving, endpoints: [endpoint] }), 0, "publish nothing, EnsurePod"],
    [
      "a silent node is given a minute",
      observationOf("activated", { pod: { ...pod, nodeDownSince: 0 } }, { ...serving, endpoints: [endpoint] }),
      59_999,
      "again 60000"
    ],
    [
      "but gets no new traffic",
      observationOf("activated", { pod: { ...pod, nodeDownSince: 0 } }, { ...serving, endpoints: [{ ...endpoint, url: "http://127.0.9.9:8000" }] }),
      59_999,
      "publish nothing, again 60000"
    ],
    [
      "and then its pod is replaced",
      observationOf("activated", { pod: { ...pod, nodeDownSince: 0 } }, { ...serving, endpoints: [endpoint] }),
      60_000,
      "publish nothing, remove pod pod-1 by force"
    ],
    [
      "one whose card failed, and that does not start on it again, is replaced",
      observationOf("activated", { pod: { ...unready, restarts: 2, gpuFault: true } }, { ...serving, endpoints: [endpoint] }),
      0,
      "publish nothing, NoteNodeFault, remove pod pod-1, again 600000"
    ],
    ["but not a restarting one", observationOf("activated", { pod: { ...unready, restarts: 1, gpuFault: true } }, serving), 0, "again 600000"],
    [
      "nor one that responds although another GPU of the node failed",
      observationOf("activated", { pod: { ...pod, restarts: 2, gpuFault: true } }, { ...serving, endpoints: [reached] }),
      0,
      ""
    ],
    ["a pod on a lost node is replaced", observationOf("activated", { pod: { ...pod, lost: "its node is gone" } }, serving), 0, "remove pod pod-1 by force"],
    ["a deleted custom resource comes back", observationOf("activated", { pod, resource: null }, { ...serving, endpoints: [reached] }), 0, "EnsureResource"],
    [
      "a deleted model is drained",
      observationOf("activated", { pod }, { ...serving, modelDeleted: true, endpoints: [endpoint] }),
      0,
      "publish nothing, again 10000"
    ]
  ],
  "activated and superseded": [
    [
      "gets no new requests",
      observationOf("activated", { pod, withdrawnAt: 0 }, { ...withRevision({ status: "superseded" }), endpoints: [endpoint] }),
      0,
      "publish nothing, again 10000"
    ],
    ["finishes those it has", observationOf("activated", { pod, withdrawnAt: 0 }, withRevision({ status: "superseded" })), 9_999, "again 10000"],
    [
      "a stream under way is not cut off",
      observationOf("activated", { pod, withdrawnAt: 0 }, { ...withRevision({ status: "superseded" }), inFlight: 1 }),
      10_000,
      "again 15000"
    ],
    [
      "however long it takes",
      observationOf("activated", { pod, withdrawnAt: 0 }, { ...withRevision({ status: "superseded" }), inFlight: 1 }),
      59.95 * minute,
      "again 3600000"
    ],
    [
      "up to the gateways' limit for a stream",
      observationOf("activated", { pod, withdrawnAt: 0 }, { ...withRevision({ status: "superseded" }), inFlight: 1 }),
      60 * minute,
      "remove pod pod-1"
    ],
    [
      "an endpoint that was withdrawn just now gets its time too",
      observationOf("activated", { pod, withdrawnAt: null }, withRevision({ status: "superseded" })),
      5_000,
      "again 15000"
    ],
    [
      "an engine that is lost has nothing to finish",
      observationOf("activated", { pod: { ...pod, lost: "Evicted" }, withdrawnAt: 0 }, { ...withRevision({ status: "superseded" }), inFlight: 1 }),
      0,
      "remove pod pod-1 by force"
    ],
    [
      "the engine of a deleted model drains too",
      observationOf("activated", { pod, withdrawnAt: 0 }, { ...serving, modelDeleted: true }),
      10_000,
      "remove pod pod-1"
    ],
    ["then gives its GPUs back", observationOf("activated", { pod, withdrawnAt: 0 }, withRevision({ status: "superseded" })), 10_000, "remove pod pod-1"],
    [
      "also if its node became unresponsive before its pod was gone",
      observationOf("activated", { pod: stuck, withdrawnAt: 0 }, withRevision({ status: "superseded" })),
      hour,
      "remove pod pod-1 by force"
    ],
    ["its record is not forced back into the cluster", observationOf("activated", { resource: null }, withRevision({ status: "superseded" })), 10_000, ""]
  ],
  "activated as a candidate": [
    [
      "releases its GPUs in time even if the end of its run lies in the future, after a clock was set back",
      observationOf(
        "activated",
        { pod, firstReadings: new Map([[60 * minute, 0]]) },
        { ...withRevision({ checks: report }), serve: false, endedAt: 60 * minute }
      ),
      15 * minute,
      "remove pod pod-1"
    ],
    ["keeps its GPUs for a while", observationOf("activated", { pod }, { serve: false, endedAt: 0 }), 899_999, "again 900000"],
    ["and then gives them back", observationOf("activated", { pod }, { serve: false, endedAt: 0 }), 900_000, "remove pod pod-1"]
  ],
  "after everyone was away": [
    [
      "the hub has its time again",
      observationOf("screening", { ...unavailable("screening", 1, 60 * minute), leadingSince: 60 * minute }, { revision: null }),
      60 * minute + 2_000,
      "work screening"
    ],
    [
      "a pod without a node is given patience",
      observationOf("provisioning", {
        leadingSince: 60 * minute,
        freeSlots: 0,
        pod: { ...unready, scheduled: false, started: false, unschedulable: { since: 0, message: "0/1 nodes" } }
      }),
      60 * minute,
      `again ${60.25 * minute}`
    ],
    [
      "an image may be pulled again",
      observationOf("provisioning", { leadingSince: 60 * minute, pod: { ...unready, started: false, blocked: "ImagePullBackOff" } }),
      60 * minute,
      `again ${62 * minute}`
    ],
    [
      "a node may start the container",
      observationOf("provisioning", { leadingSince: 60 * minute, pod: { ...unready, started: false } }),
      60 * minute,
      `again ${90 * minute}`
    ],
    ["an engine may boot", observationOf("booting", { leadingSince: 60 * minute, pod: unready }), 60 * minute, `again ${70 * minute}`],
    ["and come back in its trial", observationOf("checking", { leadingSince: 60 * minute, pod: unready }), 60 * minute, `again ${70 * minute}`],
    ["gateways may reach it", observationOf("activating", { leadingSince: 60 * minute, pod }, { endpoints: [endpoint] }), 60 * minute, `again ${62 * minute}`],
    [
      "a silent node may answer",
      observationOf("activated", { leadingSince: 60 * minute, pod: { ...pod, nodeDownSince: 0 } }, { ...serving, endpoints: [endpoint] }),
      60 * minute,
      `again ${61 * minute}`
    ],
    [
      "a serving engine may become ready again",
      observationOf("activated", { leadingSince: 60 * minute, pod: unready }, serving),
      60 * minute,
      `again ${70 * minute}`
    ],
    [
      "but an engine that then exceeds its limit fails",
      observationOf("booting", { leadingSince: 60 * minute, pod: unready }),
      70 * minute,
      "keep log, enter failed boot_timeout"
    ]
  ],
  "failed and cancelled": [
    [
      "a canceled run is cleaned up, including objects that no watch shows",
      observationOf(
        "cancelled",
        { pod, fetch: ObservedFetch.Active({ obstacle: null, progress: null }), resource: { uid: "mdep-1", shownPhase: "booting" } },
        { endpoints: [endpoint] }
      ),
      0,
      "publish nothing, remove pod, RemoveFetch"
    ],
    ["once shown as cancelled, nothing is written again", observationOf("cancelled", { resource: { uid: "mdep-1", shownPhase: "cancelled" } }), 0, ""],
    [
      "but a pod that its silent node never lets go of is taken from it",
      observationOf("cancelled", { resource: shown("cancelled"), pod: stuck }),
      hour,
      "remove pod pod-1 by force"
    ],
    [
      "a pod that a stale write made after all is removed",
      observationOf("failed", { pod, resource: { uid: "mdep-1", shownPhase: "failed" } }),
      0,
      "remove pod pod-1"
    ],
    ["once nothing is left, that is said", observationOf("failed", { released: false, resource: { uid: "mdep-1", shownPhase: "failed" } }), 0, "Release"],
    ["its object stays if it is kept forever", observationOf("failed", { resource: shown("failed"), keepFinished: null }), 90 * minute, ""],
    [
      "its object stays for as long as it is kept",
      observationOf("failed", { resource: shown("failed"), keepFinished: hour }, { endedAt: minute }),
      0,
      `again ${61 * minute}`
    ],
    [
      "its object is deleted then",
      observationOf("failed", { resource: shown("failed"), keepFinished: hour }, { endedAt: minute }),
      61 * minute,
      "RemoveResource"
    ],
    [
      "which counts from the last change of its status",
      observationOf("cancelled", { resource: shown("cancelled"), keepFinished: hour, shownSince: 5 * minute }, { endedAt: minute }),
      61 * minute,
      `again ${65 * minute}`
    ],
    ["an applied object is never deleted", observationOf("failed", { resource: shown("failed"), keepFinished: hour }, { applied: theirs }), 90 * minute, ""],
    [
      "an object is deleted only after its status shows the end of its run",
      observationOf("failed", { resource: shown("booting"), keepFinished: hour }),
      90 * minute,
      "remove pod, RemoveFetch"
    ],
    [
      "an object stays while something of its run is left",
      observationOf("failed", { resource: shown("failed"), keepFinished: hour, pod }),
      90 * minute,
      "remove pod pod-1"
    ],
    [
      "the object of a serving run stays",
      observationOf("activated", { resource: shown("activated"), keepFinished: 1, pod }, { ...serving, endpoints: [endpoint] }),
      90 * minute,
      ""
    ],
    [
      "also if the model is idle",
      observationOf("activated", { resource: shown("activated"), keepFinished: 1 }, { ...serving, modelDisabled: true }),
      90 * minute,
      ""
    ],
    [
      "the object of a replaced revision is deleted once its engine is gone",
      observationOf("activated", { resource: shown("activated"), keepFinished: hour }, { ...serving, ...withRevision({ status: "superseded" }) }),
      90 * minute,
      "RemoveResource"
    ],
    ["a deleted record stays deleted", observationOf("failed", { resource: null }), 0, ""],
    ["a run of a deleted model ends", observationOf("checking", { pod }, { modelDeleted: true }), 0, "enter cancelled"]
  ]
}

for (const [name, cases] of Object.entries(tables)) {
  describe(name, () => {
    for (const [promise, observation, now, expected] of cases) {
      it(promise, () => {
        const decision = decide(observation, now)
        assert.strictEqual(words(decision), expected)
        // A time in the past would cause a loop without a pause.
        assert.isAbove(decision.requeueAt ?? Number.POSITIVE_INFINITY, now)
      })
    }
  })
}

describe("what a run waits for", () => {
  it("is stated in a message", () => {
    assert.strictEqual(
      decide(observationOf("waiting", {}, { olderRun: otherDeployment }), 0).message,
      `The deployment waits for the older deployment ${otherDeployment} of this model to end.`
    )
    assert.strictEqual(
      decide(observationOf("queued", { freeSlots: 0, ahead: 2 }), 0).message,
      "The deployment waits for 1 GPU of simulated: 2 deployments go first."
    )
    assert.strictEqual(decide(observationOf("queued", { freeSlots: 0 }), 0).message, "The deployment waits for 1 GPU of simulated: first in the queue.")
    assert.strictEqual(decide(observationOf("failed", {}, { failure: { code: "boot_timeout", text: "No." } }), 0).message, "boot_timeout: No.")
    assert.strictEqual(decide(observationOf("screening", {}, { ...run, revision: null }), 0).message, "Seatrial reads seatrial/tiny-chat.")
  })
})

describe("a failure of the trial for which the model is not at fault", () => {
  it.each([
    [
      "a suite that could not be run",
      observationOf("checking", { pod, ...unavailable("checking", 3, 0) }),
      1_000,
      /; deploy again\. The model hub cannot be reached\.$/
    ],
    [
      "a gateway that is unreachable",
      observationOf("activating", { pod }),
      10_000_000,
      /within 2 minutes\. Deploy again; if the problem persists, contact the cluster administrator\.$/
    ],
    [
      "a gateway that is unreachable while another revision serves",
      observationOf("activating", { pod }, { predecessor: { run: otherDeployment, commit: "b".repeat(40), hostClass: "local", gpus: 1, replicas: 1 } }),
      10_000_000,
      /within 2 minutes\. The previous revision continues to serve\. Deploy again; if the problem persists, contact the cluster administrator\.$/
    ],
    [
      "a gateway that is unreachable after the previous revision released its GPUs",
      observationOf(
        "activating",
        { pod },
        { predecessor: { run: otherDeployment, commit: "b".repeat(40), hostClass: "local", gpus: 1, replicas: 1 }, replaces: true }
      ),
      10_000_000,
      /within 2 minutes\. Deploy again; if the problem persists, contact the cluster administrator\.$/
    ],
    [
      "a merge without an end",
      observationOf("checking", {
        merged: "wanted",
        pod: { ...unready, merge: { running: true, done: false, failures: 0, failure: null, endedAt: null, final: false } }
      }),
      100_000_000,
      /^fidelity_not_run: The adapter was not merged .* Deploy again; if the problem persists, use a repository with the adapter merged into its base\.$/
    ]
  ] as const)("says what to do: %s", (_, world, now, text) => {
    assert.match(decide(world, now).message, text)
  })
})
