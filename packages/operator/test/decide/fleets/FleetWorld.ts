import type { DeploymentId } from "@seatrial/domain"
import type { Endpoint, PublishedEndpoint, Run } from "@seatrial/store"
import { type Action, type Decision, worksOf } from "../../../src/decide/Decision.ts"
import { idleAt, isIdle } from "../../../src/decide/idle.ts"
import { drainTime, trialAttempts } from "../../../src/limits.ts"
import { isServed } from "../../../src/observation/isServed.ts"
import type { Observation } from "../../../src/observation/Observation.ts"
import { noGrowth, type ObservedEngine } from "../../../src/observation/ObservedEngine.ts"
import { type ObservedPod, whichStart } from "../../../src/observation/ObservedPod.ts"
import type { WorkEnded } from "../../../src/observation/work.ts"
import { enginePodName } from "../../../src/resources/objectNames.ts"
import type { PodClass } from "../../../src/resources/PodClass.ts"
import { deploymentId, observed, pod, podClass, revision, run } from "../../observations.ts"
import { faultsOf } from "./faultsOf.ts"
import type { WorldGpus } from "./WorldGpus.ts"

export const mostReplicas = 4

/** Decides about the engines of a model. */
export type Planner = (observation: Observation, now: number) => Decision

/** One engine as it is in the cluster, and what the operator remembers of it. */
export interface Engine {
  readonly ordinal: number
  pod: ObservedPod | null
  /** The result of the comparison of the start `boot`. */
  boot: string
  outcome: "same" | "differs" | null
  comparedAt: number
  /** How the last comparison ended that had no result. */
  ended: WorkEnded | null
  /** A start that once gave the verified answers. It does so again. */
  good: string
  withdrawnAt: number | null
  /** Requests under way. */
  requests: number
}

export interface WorldOptions {
  readonly planner: Planner
  readonly draw: () => number
  readonly gpus: WorldGpus
  readonly replicas: number
  /** How many engines the model keeps although runs of other models are queued. Absent: all. */
  readonly minReplicas?: number
  /** The run that owns the engines. Absent: the usual one. */
  readonly id?: DeploymentId
  /** `hold_seconds` of the model. */
  readonly hold: number | null
}

const bootOf = ({ restarts, uid }: ObservedPod): string => `${uid} ${restarts}`

/**
 * A model with several engines on one node, the queue of other runs, and the gateways. The grants of GPUs are those of
 * the operator's own pool. Faults may happen at any time.
 */
export class FleetWorld {
  clock = { now: 0 }
  leadingSince = 0
  faults = new Set<string>()
  /** The other revision of the model during a move, and whether this is the earlier one. */
  sibling: FleetWorld | null = null
  isSuperseded = false
  settings: Pick<PodClass, "maxSurge" | "maxUnavailable"> = {}
  readonly gpus: WorldGpus
  replicas: number
  readonly minReplicas: number | null
  disabled = false
  /** The share of comparisons that have no result. */
  failing = 0
  /** Whether every engine that is asked for its requests answers. */
  isCalm = false
  endpoints: ReadonlyArray<PublishedEndpoint> = []
  engines: ReadonlyArray<Engine> = []
  readonly draw: () => number
  private readonly planner: Planner
  private readonly hold: number | null
  private readonly run: Run
  /** The starts that are compared, by the ordinals of their engines. */
  private comparisons: ReadonlyMap<number, string> = new Map()
  private fleetWithdrawnAt: number | null = null
  private lastUsedAt = 0
  private made = 0
  /** The endpoints that the gateways know, and since when the published ones differ from them. */
  private routes: ReadonlyArray<Endpoint> = []
  private routesOldSince: number | null = null

  constructor({ draw, gpus, hold, id = deploymentId, minReplicas, planner, replicas }: WorldOptions) {
    this.draw = draw
    this.gpus = gpus
    this.hold = hold
    this.planner = planner
    this.replicas = replicas
    this.minReplicas = minReplicas ?? null
    const settings = hold === null ? revision.settings : { ...revision.settings, hold_seconds: hold }
    this.run = { ...run, id, engineRun: id, phase: "activated", endedAt: 0, revision: { ...revision, status: "active", settings } }
  }

  engine(ordinal: number): Engine {
    const known = this.engines.find((each) => each.ordinal === ordinal)
    if (known !== undefined) return known
    const engine: Engine = { ordinal, pod: null, boot: "", outcome: null, comparedAt: 0, ended: null, good: "", withdrawnAt: null, requests: 0 }
    this.engines = [...this.engines, engine].toSorted((one, other) => one.ordinal - other.ordinal)
    return engine
  }

  get now(): number {
    return this.clock.now
  }

  /** Engines that the model keeps although runs of other models are queued. */
  get kept(): number {
    return Math.max(1, Math.min(this.minReplicas ?? this.replicas, this.replicas))
  }

  /** Pods of the model's engines, of both revisions. */
  get present(): number {
    return [this, ...(this.sibling === null ? [] : [this.sibling])].flatMap(({ engines }) => engines).filter(({ pod }) => pod !== null).length
  }

  /** Good engines of the model, of both revisions. */
  get good(): number {
    return [this, ...(this.sibling === null ? [] : [this.sibling])].flatMap(({ engines }) => engines).filter((engine) => this.isGood(engine)).length
  }

  /** Whether gateways route to the engine and it answers. */
  isGood({ pod }: Engine): boolean {
    if (pod === null || !pod.ready || pod.deleting || pod.lost !== null || pod.nodeDownSince !== null) return false
    return [...this.endpoints, ...(this.sibling?.endpoints ?? [])].some((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)
  }

  /** The comparison of the engine's current start. */
  outcomeOf({ boot, outcome, pod }: Engine): Engine["outcome"] {
    return pod !== null && boot === bootOf(pod) ? outcome : null
  }

  /** Whether every attempt to compare the engine's current start failed. */
  isUncompared({ ended, pod }: Engine): boolean {
    return pod !== null && ended?.about === bootOf(pod) && ended.attempts >= trialAttempts
  }

  /** What the operator reads. */
  observe(): Observation {
    const scaling = this.minReplicas === null ? null : { minReplicas: this.minReplicas, maxReplicas: mostReplicas, target: 0.8 }
    const current: Run = { ...this.run, replicas: this.replicas, scaling, endpoints: this.endpoints, lastUsedAt: this.lastUsedAt, modelDisabled: this.disabled }
    const moves = this.sibling !== null && !this.disabled
    const leaves = this.isSuperseded && moves && (this.replicas > 1 || this.endpoints.length > 0)
    const counted = this.disabled || this.hold !== null || this.isSuperseded
    const inFlight = counted ? this.engines.reduce((sum, { requests }) => sum + requests, 0) : 0
    const newer = this.sibling?.reached()
    const serving: Run = {
      ...current,
      inFlight: leaves ? this.ownRequests() : inFlight,
      revision: current.revision === null ? null : { ...current.revision, status: this.isSuperseded ? "superseded" : "active" },
      ...(leaves && newer !== undefined ? { newer } : {}),
      ...(!this.isSuperseded && moves ? { earlier: this.sibling?.endpoints.filter(({ reachable }) => reachable).length ?? 0 } : {})
    }
    const wanted = isServed({ run: serving }) ? this.replicas : 0
    for (let ordinal = 0; ordinal < wanted; ordinal++) this.engine(ordinal)
    const [first, ...others] = [this.engine(0), ...this.engines.filter(({ ordinal, pod }) => ordinal > 0 && (pod !== null || ordinal < wanted))]
    const hasAny = [first, ...others].some((engine) => engine?.pod != null)
    this.fleetWithdrawnAt = hasAny && this.endpoints.length === 0 && counted ? (this.fleetWithdrawnAt ?? this.now) : null
    const { requests: _, ordinal: __, ...alone } = this.observeEngine(first ?? this.engine(0))
    const question = { run: serving, podClass, classes: [podClass], reservations: [], funding: null, hasFirst: alone.pod !== null }
    const placed = others.filter(({ pod }) => pod !== null).length + (leaves && alone.pod !== null ? 1 : 0)
    return {
      ...observed,
      ...alone,
      run: serving,
      resource: { uid: "mdep-1", shownPhase: "activated" },
      podClass: { ...podClass, ...this.settings, evictable: true },
      withdrawnAt: leaves ? alone.withdrawnAt : this.fleetWithdrawnAt,
      engines: others.map((engine) => this.observeEngine(engine)),
      growth: (others.length === 0 || wanted === 0) && !leaves ? noGrowth : this.gpus.pool.growth({ ...question, placed }),
      freeSlots: Math.max(0, this.gpus.unclaimed),
      leadingSince: this.leadingSince
    }
  }

  /** The pods of engines that serve and that a gateway has reached. */
  private reached(): ReadonlyArray<string> {
    const reached = this.endpoints.filter(({ reachable }) => reachable).map(({ pod }) => pod)
    return this.engines.flatMap((engine) => (this.isGood(engine) && reached.includes(engine.pod?.name ?? "") ? (engine.pod?.name ?? []) : []))
  }

  /** The requests of the first engine, as it reports them. */
  private ownRequests(): number {
    const { pod, requests, withdrawnAt } = this.engine(0)
    const isAsked = withdrawnAt !== null && this.now >= withdrawnAt + drainTime
    return pod?.ready !== true ? 0 : isAsked && (this.isCalm || this.draw() < 0.9) ? requests : 1
  }

  private observeEngine(engine: Engine): ObservedEngine {
    const { comparedAt, ended, ordinal, pod, requests } = engine
    const hasTraffic = this.endpoints.some((endpoint) => endpoint.pod === enginePodName(this.run.id, ordinal))
    engine.withdrawnAt = pod !== null && !hasTraffic ? (engine.withdrawnAt ?? this.now) : null
    const isAsked = pod?.ready === true && engine.withdrawnAt !== null && this.now >= engine.withdrawnAt + drainTime
    const outcome = this.outcomeOf(engine)
    const compared = this.comparisons.get(ordinal)
    return {
      ordinal,
      pod,
      boot: pod === null ? null : { boot: bootOf(pod), failures: 1, verdict: outcome === null ? null : { outcome, message: "", failures: 1, at: comparedAt } },
      admission: null,
      elsewhere: true,
      outdated: false,
      work: { running: compared === undefined ? null : "boot", ended },
      sameStart: compared !== undefined && compared === whichStart(pod),
      withdrawnAt: engine.withdrawnAt,
      requests: isAsked && (this.isCalm || this.draw() < 0.9) ? requests : null
    }
  }

  /** Whether the model is to serve: it is not disabled, and a caller asked lately. */
  mustServe(observation: Observation): boolean {
    const idles = idleAt(observation)
    if (this.isSuperseded) return !this.disabled
    return isServed(observation) && (idles === null || this.now < idles || observation.run.inFlight > 0)
  }

  /** One pass of the operator, which may end after any of its writes. */
  reconcile(crashAfter = Number.POSITIVE_INFINITY): Decision {
    const observation = this.observe()
    const decision = this.planner(observation, this.now)
    const granted = decision.actions.flatMap((action) => (action._tag === "EnsurePod" ? (action.ordinal ?? 0) : []))
    const check = faultsOf(this, observation, this.mustServe(observation))
    check.decided(decision)
    const present = observation.engines.flatMap(({ ordinal, pod }) => (pod !== null || granted.includes(ordinal) ? ordinal : []))
    this.gpus.pool.note(observation.run, "activated", isIdle(observation, this.now), { otherEngines: present })
    for (const action of decision.actions.slice(0, crashAfter)) {
      check.before(action)
      this.apply(action)
      check.after(action)
    }
    const works = crashAfter < decision.actions.length ? [] : worksOf(decision)
    this.comparisons = new Map(works.map(({ ordinal }) => [ordinal, whichStart(this.engine(ordinal).pod)]))
    return decision
  }

  private apply(action: Action): void {
    switch (action._tag) {
      case "EnsurePod": {
        const engine = this.engine(action.ordinal ?? 0)
        engine.pod ??= this.newPod(engine.ordinal)
        engine.requests = 0
        break
      }
      case "RemovePod": {
        const engine = this.engine(action.ordinal ?? 0)
        if (engine.pod === null || (action.uid !== null && action.uid !== engine.pod.uid)) break
        engine.pod = action.force ? null : { ...engine.pod, deleting: true, ready: false }
        break
      }
      case "Publish": {
        const isKnown = ({ pod, url }: Endpoint) => this.endpoints.some((each) => each.url === url && each.pod === pod && each.reachable)
        this.endpoints = action.endpoints.map((endpoint) => ({ ...endpoint, reachable: isKnown(endpoint) }))
        this.routesOldSince ??= this.now
        break
      }
      default:
    }
    this.showPods()
  }

  private newPod(ordinal: number): ObservedPod {
    const uid = `pod-${this.run.id}-${++this.made}`
    const blank = { started: false, startedAt: null, ready: false, readyChangedAt: null, url: null, scheduled: false, scheduledAt: null }
    return { ...pod, ...blank, name: enginePodName(this.run.id, ordinal), uid, createdAt: this.now }
  }

  /** The ledger shows the pods of the cluster. */
  showPods(): void {
    for (const { ordinal, pod } of this.engines) this.gpus.show(enginePodName(this.run.id, ordinal), pod !== null, pod?.scheduled === true)
  }

  /** The cluster goes on with one pod. */
  advance(engine: Engine): void {
    const { pod } = engine
    if (pod === null || pod.nodeDownSince !== null) return
    if (pod.deleting) engine.pod = null
    else if (!pod.scheduled) {
      if (this.gpus.free <= 0) engine.pod = { ...pod, unschedulable: pod.unschedulable ?? { since: this.now, message: "0/1 nodes" } }
      else engine.pod = { ...pod, scheduled: true, scheduledAt: this.now, unschedulable: null }
    } else if (!pod.started) engine.pod = { ...pod, started: true, startedAt: this.now, url: `http://${this.run.id}.${this.made}:${8000 + engine.ordinal}` }
    else if (!pod.ready && pod.lost === null) engine.pod = { ...pod, ready: true, readyChangedAt: this.now }
    if (engine.pod === null) engine.requests = 0
    this.showPods()
  }

  /** One of the comparisons that run ends. `failed`: it has no result. */
  finishWork(outcome: "same" | "differs" | "failed"): void {
    const [ordinal, start] = [...this.comparisons][Math.floor(this.draw() * this.comparisons.size)] ?? []
    if (ordinal === undefined) return
    const engine = this.engine(ordinal)
    const { pod } = engine
    if (pod?.ready === true && whichStart(pod) === start) {
      const boot = bootOf(pod)
      if (outcome === "failed") {
        const attempts = (engine.ended?.about === boot ? engine.ended.attempts : 0) + 1
        engine.ended = { kind: "boot", about: boot, attempts, at: this.now, failure: null, message: "No answer.", byRepository: false }
      } else {
        Object.assign(engine, { boot, outcome: engine.good === boot ? "same" : outcome, comparedAt: this.now, ended: null })
        if (engine.outcome === "same") engine.good = boot
      }
    }
    this.comparisons = new Map([...this.comparisons].filter(([each]) => each !== ordinal))
  }

  /** Every gateway reads the routes, and reaches the engines that answer. */
  reach(): void {
    this.routes = this.endpoints.filter(({ reachable }) => reachable)
    this.routesOldSince = null
    this.endpoints = this.endpoints.map((endpoint) => {
      const answers = this.engines.some(({ pod }) => pod?.ready === true && pod.url === endpoint.url)
      return { ...endpoint, reachable: endpoint.reachable || answers }
    })
  }

  /** A caller sends a request. Gateways know of a change within seconds. */
  ask(): void {
    if (this.routesOldSince !== null && this.now >= this.routesOldSince + drainTime / 2) this.reach()
    this.lastUsedAt = this.now
    const { url } = this.routes[Math.floor(this.draw() * this.routes.length)] ?? {}
    const engine = this.engines.find(({ pod }) => pod !== null && pod.url === url && pod.ready)
    if (engine !== undefined) engine.requests++
  }

  /** The operator is replaced: what it had in memory is lost. */
  replaceOperator(): void {
    this.loseMemory()
    this.sibling?.loseMemory()
    this.gpus.forget()
    this.notePods()
    this.sibling?.notePods()
  }

  private loseMemory(): void {
    this.comparisons = new Map()
    this.leadingSince = this.now
    this.fleetWithdrawnAt = null
    for (const engine of this.engines) {
      engine.withdrawnAt = null
      engine.ended = null
      if (engine.pod !== null && !this.isGood(engine)) engine.boot = ""
    }
  }

  private notePods(): void {
    if (this.isSuperseded) return
    const otherEngines = this.engines.flatMap(({ ordinal, pod }) => (ordinal > 0 && pod !== null ? ordinal : []))
    this.gpus.pool.note({ ...this.run, modelDisabled: this.disabled }, "activated", false, { otherEngines })
  }

  state(): string {
    return JSON.stringify([this.engines, this.endpoints, this.gpus.others.map(({ run, state }) => [run.id, state]), [...this.comparisons]])
  }
}
