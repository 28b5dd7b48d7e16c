import { isFinished, type Phase, workingPhases } from "@seatrial/domain"
import type { Run, RunRevision } from "@seatrial/store"
import type { Observation } from "../../src/observation/Observation.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import type { ObservedPod } from "../../src/observation/ObservedPod.ts"
import { ObservedReference } from "../../src/observation/ObservedReference.ts"
import { workKinds } from "../../src/observation/work.ts"
import { benchmark, measured, observed, otherDeployment, pod, podClass, report, revision, run, url } from "../observations.ts"

const phases: ReadonlyArray<Phase> = [...workingPhases, "activated", "failed", "cancelled"]
/** Whether a run in `phase` has left `done` behind. */
const isAfter = (phase: Phase, done: Phase) => phases.indexOf(phase) > phases.indexOf(done) && phase !== "failed" && phase !== "cancelled"

/** A text of the cluster that may name another organization's object. */
export const foreign = "another-organizations-workload"
/** A text that an engine has printed. */
export const secret = "hf_aTokenThatAnEnginePrinted, asked: What does a sea trial show?"
const [tried, other] = [`sha256:${"a".repeat(64)}`, `sha256:${"b".repeat(64)}`]

/**
 * Any observation that reading the world may give. Each part is drawn independently, so it includes combinations that
 * no normal sequence leads to.
 */
export const anyObservation = (draw: () => number): { readonly seen: Observation; readonly now: number } => {
  const chance = (probability: number) => draw() < probability
  const pick = <A>(...all: readonly [A, ...ReadonlyArray<A>]): A => all[Math.floor(draw() * all.length)] ?? all[0]
  const time = () => Math.floor(draw() * 10_000_000)
  const now = 10_000_000
  // Serving runs are the most critical, so they are drawn more often.
  const phase = chance(0.25) ? "activated" : (phases[Math.floor(draw() * phases.length)] ?? "screening")
  const checked = isAfter(phase, "checking")
  const drawnRevision: RunRevision = {
    ...revision,
    status: phase === "activated" ? pick("active", "draft", "superseded") : chance(0.1) ? "active" : "draft",
    checks: checked || chance(0.2) ? { ...report, passed: checked || chance(0.7) } : null,
    measured: isAfter(phase, "measuring") || chance(0.2) ? { ...measured, kv_cache_tokens: pick(4_096, 4_096, 100, null) } : null,
    benchmark: isAfter(phase, "benchmarking") || chance(0.2) ? benchmark : null,
    ...pick<Partial<RunRevision>>({ engineImage: null }, { engineImage: pod.image }, { engineImage: pod.image, engineDigest: tried }),
    settings: { ...revision.settings, ...(chance(0.4) ? { hold_seconds: pick(0, 60, 3_600) } : {}) }
  }
  const ended = isFinished(phase)
  const reuses = chance(0.25)
  const drawn: Run = {
    ...run,
    phase,
    phaseSince: time(),
    requeues: Math.floor(draw() * 4),
    nodeFaults: chance(0.2) ? [{ node: "node-1", code: pick("gpu_fault", "output_garbage", "engine_crashed"), at: time() }] : [],
    failure: phase === "failed" ? { code: "does_not_fit", text: "No." } : null,
    serve: chance(0.8),
    endedAt: ended ? time() : null,
    revision: phase === "screening" && chance(0.7) ? null : drawnRevision,
    spendLimited: chance(0.2),
    modelDeleted: chance(0.15),
    modelDisabled: chance(0.15),
    engineRun: reuses ? otherDeployment : run.id,
    reusedBy: !reuses && chance(0.15) ? [otherDeployment] : [],
    gpuLimit: chance(0.3) ? Math.floor(draw() * 3) : null,
    olderRun: chance(0.15) ? otherDeployment : null,
    replaces: chance(0.1),
    replacedBy: chance(0.1) ? otherDeployment : null,
    lastUsedAt: chance(0.5) ? time() : null,
    endpoints: chance(0.4) ? [{ url: chance(0.8) ? url : "http://127.0.9.9:8000", pod: pod.name, reachable: chance(0.6) }] : [],
    inFlight: chance(0.4) ? 2 : 0
  }
  const started = chance(0.8)
  const ready = started && chance(0.6)
  const present: ObservedPod = {
    ...pod,
    createdAt: time(),
    imageDigest: pick(null, tried, tried, other),
    imagePinned: chance(0.3),
    deleting: chance(0.15),
    scheduled: started || chance(0.5),
    unschedulable: chance(0.1) ? { since: time(), message: `0/1 nodes are available: 1 has ${foreign}.` } : null,
    gated: chance(0.05),
    started,
    startedAt: started ? time() : null,
    ready,
    readyChangedAt: chance(0.8) ? time() : null,
    restarts: Math.floor(draw() * 4),
    lastExit: chance(0.3) ? { code: pick(0, 1, 137), reason: pick("Error", "OOMKilled", "Completed") } : null,
    blocked: chance(0.1) ? "ImagePullBackOff" : null,
    lost: chance(0.15) ? `Evicted for ${foreign}` : null,
    scheduledAt: chance(0.8) ? time() : null,
    merge: chance(0.1) ? { running: false, done: true, endedAt: time(), failures: 0, failure: null, final: false } : null,
    gpuFault: chance(0.15),
    nodeDownSince: chance(0.15) ? time() : null,
    url: ready || chance(0.5) ? url : null
  }
  const failure = { code: "does_not_fit", text: "No." } as const
  const ran = pick(...workKinds)
  const observation: Observation = {
    ...observed,
    run: drawn,
    resource: chance(0.8) ? { uid: "mdep-1", shownPhase: chance(0.7) ? phase : null } : null,
    shownSince: time(),
    keepFinished: chance(0.5) ? Math.floor(draw() * 100_000) : null,
    podClass: chance(0.9) ? { ...podClass, rollout: pick("surge", "replace"), evictable: chance(0.3), sentinel: { withdrawLast: chance(0.5) } } : null,
    fetch: pick<ObservedFetch>(
      ObservedFetch.Absent(),
      ObservedFetch.Active({ obstacle: null, progress: null }),
      ObservedFetch.Succeeded(),
      ObservedFetch.Leaving(),
      ObservedFetch.Failed({ failure, endedAt: pick(null, 0) })
    ),
    reference: pick<ObservedReference>(
      ObservedReference.Settled({ code: null }),
      ObservedReference.Settled({ code: "quantized" }),
      ObservedReference.Absent(),
      ObservedReference.Active(),
      ObservedReference.Leaving(),
      ObservedReference.Waiting(),
      ObservedReference.Unplaced(),
      ObservedReference.Ended({ pod: pick(null, "reference-1-x"), code: pick(null, "out_of_memory") })
    ),
    heldSince: phase === "checking" && drawnRevision.checks === null && chance(0.3) ? time() : null,
    weights: pick(null, { own: true }, { own: false }),
    boot: chance(0.6)
      ? null
      : {
          boot: "pod-1 0",
          failures: Math.floor(draw() * 3),
          verdict: chance(0.3) ? null : { outcome: pick("same", "drifted", "differs", "suspect"), message: "1 of 8 differs.", failures: 1, at: time() }
        },
    merged: !ended && phase !== "screening" && drawnRevision.checks === null && !reuses && chance(0.2) ? pick("wanted", "answered") : "none",
    pod: chance(0.7) ? present : null,
    blockedSince: chance(0.2) ? time() : null,
    refusal: chance(0.1) ? { kind: pick("pod", "download", "optional", "other"), object: "Pod/p", reason: "Forbidden", message: foreign, since: time() } : null,
    bootLog: chance(0.5) ? `${secret}\n${pick("", "torch.OutOfMemoryError", "error")}` : null,
    funding: chance(0.2) ? { why: pick("balance", "day", "suspended"), releaseAt: pick(null, time()) } : null,
    admission: chance(0.5) ? `waits behind ${foreign}` : null,
    freeSlots: Math.floor(draw() * 3),
    ahead: Math.floor(draw() * 3),
    setAside: chance(0.2),
    organizationGpus: Math.floor(draw() * 3),
    predecessorHolds: chance(0.2),
    candidates: chance(0.2) ? [{ run: otherDeployment, pod: "dep-other-engine-0", gpus: 1, until: now + 60_000, inPlace: chance(0.5) }] : [],
    elsewhere: chance(0.5),
    budget: pick("absent", "absent", "intact", "edited"),
    sameStart: chance(0.5),
    work: {
      running: chance(0.2) ? ran : null,
      ended: chance(0.3)
        ? {
            kind: ran,
            about: chance(0.2) ? "earlier" : ran === "boot" ? "pod-1 0" : `${drawn.phaseSince}`,
            attempts: Math.floor(draw() * 5),
            at: time(),
            ...(chance(0.5) ? { since: time() } : {}),
            failure: chance(0.3) ? failure : null,
            message: "Away.",
            byRepository: chance(0.2)
          }
        : null
    },
    withdrawnAt: pick(null, time(), now - 60_000),
    leadingSince: chance(0.7) ? 0 : now,
    released: chance(0.3)
  }
  return { seen: observation, now }
}
