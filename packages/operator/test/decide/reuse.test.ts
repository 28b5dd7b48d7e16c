import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { decide } from "../../src/decide/decide.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import type { ObservedBoot } from "../../src/observation/ObservedPod.ts"
import { observationOf, otherDeployment, pod, podClass, report, url, withRevision } from "../observations.ts"
import { words } from "./words.ts"

const draft: Partial<Run> = { ...withRevision({ checks: report }), engineRun: otherDeployment }
const active: Partial<Run> = { ...withRevision({ status: "active", checks: report }), engineRun: otherDeployment }
const maker: Partial<Run> = { ...withRevision({ checks: report }), endedAt: 0 }
const served: Partial<Run> = { ...withRevision({ status: "active", checks: report }), endedAt: 0 }
const endpoint = { url, pod: pod.name, reachable: true }
const otherwise: ObservedBoot = { boot: "pod-1 0", failures: 1, verdict: { outcome: "differs", message: "8 of 8 greedy answers differ.", failures: 1, at: 0 } }
const shown = (phase: Run["phase"]) => ({ uid: "mdep-1", shownPhase: phase })

const tables: Record<string, ReadonlyArray<readonly [promise: string, observation: Observation, expected: string]>> = {
  "a run whose revision was verified before": [
    ["needs no download, start or trial if the engine is held", observationOf("screening", { pod }, draft), "enter activating"],
    ["starts the engine if it is gone", observationOf("screening", {}, draft), "enter provisioning"],
    ["continues with an engine that is still starting", observationOf("screening", { pod: { ...pod, ready: false } }, draft), "enter provisioning"],
    ["starts a new engine if the held one is terminating", observationOf("screening", { pod: { ...pod, deleting: true } }, draft), "enter provisioning"],
    ["waits for GPUs if none is free", observationOf("screening", { freeSlots: 0 }, draft), "enter queued"],
    ["waits for its organization's limit", observationOf("screening", { organizationGpus: 1 }, { ...draft, gpuLimit: 1 }), "enter waiting"],
    [
      "but for neither if the engine is held",
      observationOf("screening", { pod, freeSlots: 0, organizationGpus: 1 }, { ...draft, gpuLimit: 1 }),
      "enter activating"
    ],
    ["ends at once if nothing is to be served", observationOf("screening", {}, { ...draft, serve: false }), "Activate"],
    ["changes nothing if it serves already", observationOf("screening", { pod }, active), "enter activating"],
    ["is activated at once if it serves already, whatever its engine's state is", observationOf("activating", {}, active), "Activate"],
    ["goes from its start straight to traffic", observationOf("booting", { pod }, draft), "enter activating"],
    ["takes the place that its engine has", observationOf("queued", { pod, freeSlots: 0 }, draft), "enter provisioning"],
    ["deletes a lost engine before it requests another", observationOf("queued", { pod: { ...pod, lost: "Evicted" } }, draft), "remove pod pod-1 by force"],
    ["and an engine whose answers differ from the verified ones", observationOf("queued", { pod, boot: otherwise }, draft), "remove pod pod-1"],
    ["publishes the engine that it reuses", observationOf("activating", { pod, leadingSince: 1_000_000 }, draft), `publish ${url}, again 1120000`],
    ["leaves the engine alone once it is activated", observationOf("activated", { pod, resource: shown("activated") }, { ...active, endedAt: 0 }), ""],
    [
      "leaves the engine alone if it failed, but withdraws a draft's endpoint",
      observationOf(
        "failed",
        { pod, resource: shown("failed") },
        { ...draft, endedAt: 0, failure: { code: "gateway_unreachable", text: "" }, endpoints: [{ ...endpoint, reachable: false }] }
      ),
      "publish nothing"
    ],
    [
      "leaves the serving revision alone if it was canceled",
      observationOf("cancelled", { pod, resource: shown("cancelled"), released: false }, { ...active, endedAt: 0, endpoints: [endpoint] }),
      "Release"
    ]
  ],
  "a candidate that is reused": [
    [
      "keeps its engine for the run that brings it to its traffic, however long",
      observationOf("activated", { pod, resource: shown("activated") }, { ...maker, reusedBy: [otherDeployment] }),
      ""
    ],
    [
      "gives it back once that run has failed and its time is over",
      observationOf("activated", { pod, resource: shown("activated") }, maker),
      "remove pod pod-1"
    ],
    ["serves once that run is activated", observationOf("activated", { pod, resource: shown("activated") }, served), `publish ${url}`]
  ],
  "a disabled model": [
    ["is withdrawn first", observationOf("activated", { pod }, { ...served, modelDisabled: true, endpoints: [endpoint] }), "publish nothing, again 1010000"],
    ["finishes its requests", observationOf("activated", { pod, withdrawnAt: 900_000 }, { ...served, modelDisabled: true, inFlight: 1 }), "again 1005000"],
    ["gives its GPUs back", observationOf("activated", { pod, withdrawnAt: 900_000 }, { ...served, modelDisabled: true }), "remove pod pod-1"],
    [
      "stays as it is, and its custom resource with it",
      observationOf("activated", { resource: null, released: false }, { ...served, modelDisabled: true }),
      "EnsureResource"
    ],
    ["is never given up", observationOf("activated", { resource: shown("activated"), released: false }, { ...served, modelDisabled: true }), ""],
    ["starts its engine again once it is enabled", observationOf("activated", {}, served), "EnsurePod"]
  ],
  "a deleted model": [
    ["ends its unfinished run", observationOf("booting", { pod }, { ...withRevision({}), modelDeleted: true }), "enter cancelled"],
    ["is withdrawn first", observationOf("activated", { pod }, { ...served, modelDeleted: true, endpoints: [endpoint] }), "publish nothing, again 1010000"],
    [
      "removes the engine before its custom resource",
      observationOf("activated", { pod, withdrawnAt: 0, resource: shown("activated") }, { ...served, modelDeleted: true }),
      "remove pod pod-1"
    ],
    [
      "removes the custom resource last",
      observationOf("activated", { resource: shown("activated"), released: false }, { ...served, modelDeleted: true }),
      "RemoveResource"
    ],
    [
      "deletes the resource of an old failed run too",
      observationOf("failed", { resource: shown("failed") }, { ...maker, modelDeleted: true }),
      "RemoveResource"
    ],
    [
      "cleans up after a canceled run before its custom resource is deleted",
      observationOf("cancelled", { resource: shown("booting"), pod }, { ...maker, modelDeleted: true }),
      "remove pod, RemoveFetch"
    ],
    [
      "and the resource of a run that reused another run's engine",
      observationOf("activated", { pod, resource: shown("activated") }, { ...active, modelDeleted: true }),
      "RemoveResource"
    ],
    ["is released once nothing is left", observationOf("activated", { resource: null, released: false }, { ...served, modelDeleted: true }), "Release"]
  ],
  "an organization's limit": [
    ["lets a run through that stays within it", observationOf("waiting", { organizationGpus: 1 }, { gpuLimit: 2 }), "enter provisioning"],
    ["holds a run back that would pass it", observationOf("waiting", { organizationGpus: 2 }, { gpuLimit: 2 }), ""],
    ["of none holds every run back", observationOf("waiting", {}, { gpuLimit: 0 }), ""],
    [
      "is the organization's own turn, not the pool's queue",
      observationOf("materializing", { fetch: { _tag: "Succeeded" }, freeSlots: 0, organizationGpus: 2 }, { gpuLimit: 2 }),
      "NoteWeights, RemoveFetch, enter waiting"
    ],
    ["does not send back a run in the pool's queue", observationOf("queued", { organizationGpus: 5 }, { gpuLimit: 2 }), "enter provisioning"],
    ["does not keep a serving engine from restarting", observationOf("activated", { organizationGpus: 5, podClass }, { ...served, gpuLimit: 0 }), "EnsurePod"]
  ]
}

for (const [subject, cases] of Object.entries(tables)) {
  describe(subject, () => {
    for (const [promise, observation, expected] of cases) it(promise, () => assert.strictEqual(words(decide(observation, 1_000_000)), expected))
  })
}
