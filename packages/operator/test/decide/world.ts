import { canEnter, fallsBack, isFinished, type Phase } from "@seatrial/domain"
import type { Run, RunRevision } from "@seatrial/store"
import type { Action, Decision } from "../../src/decide/Decision.ts"
import { decide } from "../../src/decide/decide.ts"
import { isIdle } from "../../src/decide/idle.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import { type ObservedPod, whichStart } from "../../src/observation/ObservedPod.ts"
import type { WorkEnded } from "../../src/observation/work.ts"
import { benchmark, measured, observed, otherDeployment, pod, podClass, report, revision, run } from "../observations.ts"

/** Deterministic pseudorandom numbers from 0 to 1 for a seed (mulberry32). */
export const random = (seed: number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296
  }
}

interface State {
  run: Run
  resource: { uid: string; shownPhase: string | null } | null
  fetch: ObservedFetch
  weights: Observation["weights"]
  pod: ObservedPod | null
  work: { running: Observation["work"]["running"]; ended: WorkEnded | null }
  /** The start of the engine with which its work began. */
  begunWith: string
  free: boolean
  withdrawnAt: number | null
  budget: Observation["budget"]
}

/**
 * A serving model (`old`) and a run that is to replace it (`next`), in a cluster, a hub and gateways with faults at any
 * time. With `replace` there is one GPU, and the host class lets the run take it from the serving revision.
 */
export class World {
  now = 0
  /** Since when an operator leads. */
  leadingSince = 0
  readonly violations: Array<string> = []
  readonly phases: Array<Phase> = ["screening"]
  /** Returns to the queue from attempts without GPUs. */
  private unplaced = 0
  old: State
  next: State
  private pods = 0

  readonly replace: boolean
  /** `hold_seconds` of the serving model. */
  hold: number | null

  constructor(serve: boolean, replace = false, hold: number | null = null) {
    this.hold = hold
    this.replace = replace
    const active: RunRevision = { ...revision, status: "active", checks: report, measured, benchmark }
    const oldPod = { ...pod, uid: "old", url: "http://127.0.2.1:8000" }
    const blank: Omit<State, "pod" | "run"> = {
      resource: { uid: "r", shownPhase: null },
      fetch: ObservedFetch.Absent(),
      weights: null,
      work: { running: null, ended: null },
      begunWith: "",
      free: !replace,
      withdrawnAt: null,
      budget: "absent"
    }
    this.old = {
      ...blank,
      run: {
        ...run,
        phase: "activated",
        endedAt: 0,
        revision: active,
        endpoints: [{ url: "http://127.0.2.1:8000", pod: pod.name, reachable: true }],
        inFlight: 2
      },
      pod: oldPod
    }
    this.next = { ...blank, run: { ...run, id: otherDeployment, engineRun: otherDeployment, serve }, pod: null }
  }

  /** Whether the next run was granted the GPUs of the serving revision. */
  private get replaced(): boolean {
    const { next, old } = this
    return next.run.replaces && !isFinished(next.run.phase) && old.run.revision?.status === "active"
  }

  /** Whether GPUs are free for the run now. The serving revision gets its own back first. */
  private hasRoom(state: State): boolean {
    const { next, old } = this
    if (state.free) return true
    return state === old ? next.pod === null : old.pod === null && (this.replaced || old.run.revision?.status !== "active")
  }

  private observation(state: State): Observation {
    const { pod: present } = state
    const { hold, next, old, replaced } = this
    const { revision } = state.run
    const idles = hold !== null && revision?.status === "active"
    const precedes = state === next && old.run.revision?.status === "active"
    const run = {
      ...state.run,
      revision: idles ? { ...revision, settings: { ...revision.settings, hold_seconds: hold } } : revision,
      replacedBy: state === old && replaced ? next.run.id : null,
      predecessor: precedes ? { run: old.run.id, commit: "b".repeat(40), hostClass: "local", gpus: 1, replicas: 1 } : null
    }
    const leaving =
      run.phase === "activated" && (revision?.status === "superseded" || run.replacedBy !== null || idles) && present !== null && run.endpoints.length === 0
    state.withdrawnAt = leaving ? (state.withdrawnAt ?? this.now) : null
    return {
      ...observed,
      ...state,
      run,
      sameStart: state.work.running !== null && state.begunWith === whichStart(present),
      leadingSince: this.leadingSince,
      podClass: { ...podClass, rollout: this.replace ? "replace" : "surge", evictable: false },
      freeSlots: this.hasRoom(state) ? 1 : 0,
      ahead: 0,
      predecessorHolds: precedes && old.pod !== null,
      bootLog: ""
    }
  }

  decide(state: State): Decision {
    return decide(this.observation(state), this.now)
  }

  /** One pass. A crash may follow any of its writes. */
  reconcile(which: "old" | "next", crashAfter = Number.POSITIVE_INFINITY): Decision {
    const state = this[which]
    const decision = this.decide(state)
    if (decision.requeueAt !== null && decision.requeueAt <= this.now) this.violations.push(`looks again at once in ${state.run.phase}`)
    // A benchmark of a serving engine would slow callers down and measure their load.
    const { pod, run } = state
    const loads = decision.work === "checking" || decision.work === "measuring" || decision.work === "benchmarking" || decision.work === "fidelity"
    if (loads && run.endpoints.some((endpoint) => endpoint.url === pod?.url && endpoint.pod === pod.name))
      this.violations.push(`${decision.work} beside traffic`)
    let done = 0
    for (const action of decision.actions) {
      if (done++ >= crashAfter) {
        state.work = { running: null, ended: null }
        return decision
      }
      this.apply(which, state, action)
    }
    if (decision.work !== state.work.running || (decision.work !== null && whichStart(state.pod) !== state.begunWith)) {
      state.work = { ...state.work, running: decision.work }
      state.begunWith = whichStart(state.pod)
    }
    if (state.resource !== null && !decision.actions.some(({ _tag }) => _tag === "Enter" || _tag === "Activate" || _tag === "Publish")) {
      state.resource = { ...state.resource, shownPhase: state.run.phase }
    }
    return decision
  }

  private apply(which: string, state: State, action: Action): void {
    const serves = which === "old" && state.run.revision?.status === "active" && !this.replaced && !isIdle(this.observation(state), this.now)
    switch (action._tag) {
      case "EnsureResource":
        state.resource ??= { uid: "again", shownPhase: null }
        return
      case "EnsureFetch":
        if (state.fetch._tag === "Absent") state.fetch = ObservedFetch.Active({ obstacle: null, progress: null })
        return
      case "RemoveFetch":
        state.fetch = ObservedFetch.Absent()
        return
      case "NoteWeights":
        if (state.fetch._tag !== "Succeeded") this.violations.push("noted weights that no download found")
        state.weights = { own: true }
        return
      case "ForgetWeights":
        state.weights = null
        return
      case "EnsurePod":
        state.pod ??= {
          ...pod,
          uid: `pod-${++this.pods}`,
          createdAt: this.now,
          scheduled: false,
          startedAt: null,
          readyChangedAt: null,
          started: false,
          ready: false,
          url: null
        }
        return
      case "EnsureBudget":
        state.budget = "intact"
        return
      case "RemoveBudget":
        if (serves && state.pod !== null && state.pod.nodeDownSince === null) this.violations.push("let an engine that serves be evicted")
        state.budget = "absent"
        return
      case "RemovePod":
        if (serves && state.pod !== null && state.pod.lost === null && state.pod.nodeDownSince === null && !this.hangs(state.pod))
          this.violations.push("removed an engine that serves")
        if (
          which === "old" &&
          state.run.inFlight > 0 &&
          state.pod?.lost === null &&
          state.pod.nodeDownSince === null &&
          !this.hangs(state.pod) &&
          this.now < (state.withdrawnAt ?? this.now) + 3_600_000
        )
          this.violations.push("removed an engine with requests under way")
        if (state.pod !== null && (action.uid === null || action.uid === state.pod.uid))
          state.pod = action.force ? null : { ...state.pod, deleting: true, ready: false }
        return
      case "Publish":
        if (serves && action.endpoints.length === 0 && state.pod?.ready === true && state.pod.nodeDownSince === null)
          this.violations.push("withdrew an engine that serves")
        state.run = { ...state.run, endpoints: action.endpoints.map((endpoint) => ({ ...endpoint, reachable: false })) }
        return
      case "Activate": {
        const { run, pod } = state
        if (run.serve && !(pod?.ready === true && run.endpoints.some(({ reachable, url }) => reachable && url === pod.url)))
          this.violations.push("activated before it was reachable")
        if (run.revision?.checks?.passed !== true || run.revision.benchmark === null) this.violations.push("activated without a trial")
        this.move(state, "activated")
        if (run.serve && run.revision !== null && this.old.run.revision !== null) {
          state.run = { ...state.run, revision: { ...run.revision, status: "active" } }
          this.old.run = { ...this.old.run, revision: { ...this.old.run.revision, status: "superseded" } }
        }
        return
      }
      case "Enter":
        if (action.replaces) {
          if (!this.replace || !state.run.serve || state.fetch._tag === "Active") this.violations.push("replaced before all was tried")
          state.run = { ...state.run, replaces: true }
        }
        this.move(state, action.to, action.hadNoGpus === true)
    }
  }

  /** Whether an engine had all the time to return that its class allows. */
  private hangs({ createdAt, ready, readyChangedAt, started, startedAt }: ObservedPod): boolean {
    const since = Math.max(this.leadingSince, createdAt, readyChangedAt ?? 0, startedAt ?? 0)
    return started && !ready && this.now >= since + podClass.bootDeadlineSeconds * 1_000
  }

  private move(state: State, to: Phase, hadNoGpus = false): void {
    const from = state.run.phase
    if (!hadNoGpus && !canEnter(from, to, state.run.requeues)) this.violations.push(`${from} to ${to} after ${state.run.requeues} requeues`)
    const requeued = fallsBack(from, to)
    if (hadNoGpus) this.unplaced++
    if (!requeued && !isFinished(to) && this.phases.filter((phase) => phase === to).length > state.run.requeues + this.unplaced)
      this.violations.push(`${to} twice`)
    this.phases.push(to)
    state.run = {
      ...state.run,
      phase: to,
      phaseSince: this.now,
      requeues: state.run.requeues + (requeued && !hadNoGpus ? 1 : 0),
      endedAt: isFinished(to) ? this.now : null
    }
  }

  cancel(): void {
    if (!isFinished(this.next.run.phase)) this.move(this.next, "cancelled")
  }

  /** The background work ends. */
  finishWork(outcome: "done" | "refused" | "unavailable"): void {
    const { next } = this
    const kind = next.work.running
    if (kind === null) return
    if (outcome !== "done") {
      const about = `${next.run.phaseSince}`
      const attempts = (next.work.ended?.kind === kind && next.work.ended.about === about ? next.work.ended.attempts : 0) + 1
      const failure = outcome === "refused" ? ({ code: "does_not_fit", text: "No." } as const) : null
      next.work = { running: null, ended: { kind, about, attempts, at: this.now, failure, message: "Away.", byRepository: false } }
      return
    }
    next.work = { running: null, ended: null }
    const result = {
      screening: {},
      preparation: {},
      boot: {},
      fidelity: {},
      checking: { checks: report },
      comparing: { checks: report },
      measuring: { measured },
      benchmarking: { benchmark }
    }[kind]
    next.run = { ...next.run, revision: { ...(next.run.revision ?? revision), ...result } }
  }

  /** The cluster handles the objects of this run correctly. */
  advance(state: State): void {
    if (state.fetch._tag === "Active") state.fetch = ObservedFetch.Succeeded()
    const { pod: present } = state
    if (present === null) return
    if (present.deleting) state.pod = null
    else if (!present.scheduled)
      state.pod = this.hasRoom(state)
        ? { ...present, scheduled: true, unschedulable: null }
        : { ...present, unschedulable: present.unschedulable ?? { since: this.now, message: "0/1 nodes" } }
    else if (!present.started) state.pod = { ...present, started: true, startedAt: this.now, url: "http://127.0.3.1:8000" }
    else if (!present.ready && present.lost === null && present.nodeDownSince === null) state.pod = { ...present, ready: true, readyChangedAt: this.now }
  }

  /** A caller sends a request: a published engine gets one more, an idle one is woken. */
  ask(): void {
    const state = this.old.run.revision?.status === "active" ? this.old : this.next
    const taken = state.run.endpoints.length > 0 ? 1 : 0
    state.run = { ...state.run, lastUsedAt: this.now, inFlight: state.run.inFlight + taken }
  }

  /** A request on the engine that served first ends. */
  finishRequest(): void {
    for (const state of [this.old, this.next]) state.run = { ...state.run, inFlight: Math.max(0, state.run.inFlight - 1) }
  }

  /**
   * All components stop for this long, and state that exists only in memory is lost. `restarted`: the engines'
   * processes have ended too, as their node reports when it returns.
   */
  away(milliseconds: number, restarted: boolean): void {
    this.now += milliseconds
    this.leadingSince = this.now
    for (const state of [this.old, this.next]) {
      state.work = { running: null, ended: null }
      state.withdrawnAt = null
      const { pod: present } = state
      if (!restarted || present === null || !present.started) continue
      const lastExit = { code: 255, reason: "Unknown" }
      const readyChangedAt = present.ready ? this.now : present.readyChangedAt
      state.pod = { ...present, ready: false, readyChangedAt, restarts: present.restarts + 1, lastExit, startedAt: this.now }
    }
  }

  /** Every gateway reaches every published endpoint that responds. */
  reach(): void {
    const { next } = this
    if (next.pod?.ready === true) next.run = { ...next.run, endpoints: next.run.endpoints.map((endpoint) => ({ ...endpoint, reachable: true })) }
  }

  /** A random fault occurs. */
  fault(draw: () => number): void {
    const state = draw() < 0.5 ? this.old : this.next
    const faults: ReadonlyArray<() => void> = [
      () => this.finishWork(draw() < 0.3 ? "refused" : "unavailable"),
      () => (state.resource = null),
      () => (state.pod = null),
      () => (state.pod = state.pod === null ? null : { ...state.pod, deleting: true, ready: false }),
      () => (state.pod = state.pod === null ? null : { ...state.pod, lost: "Evicted", ready: false }),
      () =>
        (state.pod =
          state.pod === null
            ? null
            : {
                ...state.pod,
                ready: false,
                readyChangedAt: this.now,
                startedAt: this.now,
                restarts: state.pod.restarts + 1,
                lastExit: { code: 1, reason: "Error" }
              }),
      () => (state.pod = state.pod === null ? null : { ...state.pod, nodeDownSince: this.now, ready: false }),
      () => (state.pod = state.pod === null ? null : { ...state.pod, ready: false, readyChangedAt: this.now }),
      () =>
        (this.next.fetch = draw() < 0.5 ? ObservedFetch.Absent() : ObservedFetch.Failed({ failure: { code: "weights_mismatch", text: "" }, endedAt: null })),
      () => (this.next.weights = draw() < 0.3 ? null : { own: draw() < 0.3 }),
      () => (this.next.free = this.replace ? false : !this.next.free),
      () => (this.next.work = { running: null, ended: null }),
      () => (this.now += Math.floor(draw() * 180_000)),
      () => this.away(3_600_000, draw() < 0.5)
    ]
    faults[Math.floor(draw() * faults.length)]?.()
  }
}
