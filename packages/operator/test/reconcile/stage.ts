import {
  benchmarkRow,
  type CheckReport,
  canEnter,
  fallsBack,
  isFinished,
  kvCapacityRow,
  type ModelReference,
  modelCapabilities,
  nothingServed,
  type Phase
} from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { Job, KubeClient } from "@seatrial/kube"
import {
  type AlarmedEngine,
  AppliedResources,
  Decisions,
  GpuHolds,
  HostClasses,
  type NewDecision,
  type Run,
  type RunRevision,
  Runs,
  Sentinels,
  UnsentAlarms
} from "@seatrial/store"
import { Clock, Deferred, Effect, Exit, Latch, Layer, Option, Predicate, Queue, Redacted, Scope, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import { control } from "../../src/controller.ts"
import { keepVerdict } from "../../src/gather/BootVerdicts.ts"
import type { Gathered } from "../../src/gather/gather.ts"
import type { OperatorSettings } from "../../src/OperatorSettings.ts"
import { referenceJob, referencePlan } from "../../src/objects/referenceJob.ts"
import { type ObservedPod, whichStart } from "../../src/observation/ObservedPod.ts"
import { isComing } from "../../src/observation/ObservedReference.ts"
import type { WorkKind } from "../../src/observation/work.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import type { StartWork } from "../../src/work/startWork.ts"
import { benchmark, hostClass, measured, report, revision, run } from "../observations.ts"
import { makeMemoryApplied } from "./memoryApplied.ts"
import { makeMemoryKube } from "./memoryKube.ts"
import { withRelated } from "./withRelated.ts"

const settings = {
  namespace: "seatrial",
  organization: "acme",
  organizations: new Map([["team", "acme"]]),
  requireFirstPurchase: true,
  failedCapability: "withdraw" as const,
  leaseSeconds: 15,
  countAllPods: false,
  concurrency: 4,
  fetchImage: "seatrial:1",
  pullSecrets: [],
  fetchSeconds: 60,
  caConfigMap: null,
  downloadEnvironment: [],
  keepFinishedDays: 30,
  keepDecisionDays: 14,
  unpaidGraceSeconds: 3_600,
  sentinelSeconds: 60,
  sentinelShare: 0.005,
  sentinelAlpha: 1e-6,
  webhook: null,
  referenceLimits: { inAll: 4, perOrganization: 2 },
  weightsClaim: "weights",
  hubEndpoint: "http://hub"
}

const containerRuns = { name: "engine", ready: true, restartCount: 0, state: { running: {} } }
const scheduled = { type: "PodScheduled", status: "True" }

/**
 * What the cluster does with pods: ready at once, or held if a test requires it. `gated`: nothing, as before Kueue
 * admits it.
 */
export type PodStory = "ready" | "starting" | "unschedulable" | "gated"

/**
 * A whole world in memory around the real controller: rows, an API server, a cluster that runs its pods, gateways. Any
 * write can be the operator's last.
 */
export const makeStage = (token: Option.Option<string> = Option.none(), facts: RunRevision["facts"] = revision.facts) => {
  const kube = makeMemoryKube()
  const rows = new Map<string, Run>([[run.id, run]])
  const changed: Array<Queue.Queue<Run["id"]>> = []
  const changes = Latch.makeUnsafe(false)
  const writes: Array<string> = []
  const decided: Array<NewDecision> = []
  /** The engines with an alarm of an earlier leader. */
  let alarmed: ReadonlyArray<AlarmedEngine> = []
  /** The runs that were read, one for each pass. */
  const reads: Array<Run["id"]> = []
  const published: Array<number> = []
  const publishedUids: Array<string> = []
  /** The background work that was done, with the init containers of that engine. */
  const worked: Array<string> = []
  const classes: Array<string> = []
  let released = 0
  /** The requests that gateways report for each model with limits; null if they report nothing. */
  let requests: number | null = null
  let usedUp: Effect.Success<ReturnType<Runs["Service"]["usedUp"]>> = null
  /** The requests that each engine reports; null if it does not answer, as on a closed port. */
  let running: number | null = 0
  /** Whether another operator leads, so that this one's writes to Postgres change nothing. */
  let superseded = false
  /** Whether the operator's own writes notify it of nothing, as in Postgres. */
  let isQuiet = false
  let story: PodStory = "ready"
  /** The report of the checks on that node. */
  let reportOn: (node: string) => CheckReport = () => report
  /** Whether the answers of a restarted engine match the verified ones. */
  let answersOf: (pod: ObservedPod) => "same" | "differs" = () => "same"
  /** Runs between the reading of a run and the next step of its pass. */
  let afterRead: Effect.Effect<void> = Effect.void
  /** Runs before background work has a result. */
  let patience: Effect.Effect<void> = Effect.void
  /** The stored references, and why commits have none. */
  const references: Array<ModelReference> = []
  const causes = new Map<string, string>()
  /** The repository's facts for each run. */
  let factsOf: (id: Run["id"]) => RunRevision["facts"] = () => facts
  /** What the cluster does with a new Job of a reference. */
  let referenceStory: (job: string) => void = () => {}
  let crashAt = Number.POSITIVE_INFINITY
  let crashed = Deferred.makeUnsafe<void>()

  const wake = () => changes.openUnsafe()
  /** Every write passes through here after it was made. The write at which the operator dies never returns. */
  const gate = (write: string) =>
    Effect.suspend(() => {
      writes.push(write)
      wake()
      if (writes.length < crashAt) return Effect.void
      Deferred.doneUnsafe(crashed, Effect.void)
      return Effect.never
    })
  kube.setGate(gate)

  const notify = (id: Run["id"]) => {
    for (const queue of changed) Queue.offerUnsafe(queue, id)
    wake()
  }
  const change = (id: Run["id"], next: (row: Run) => Run) => {
    const row = rows.get(id)
    if (row === undefined) return
    rows.set(id, next(row))
    notify(id)
  }
  /** A write of the operator itself. */
  const changeOwn = (id: Run["id"], next: (row: Run) => Run) => {
    const row = rows.get(id)
    if (row === undefined) return
    rows.set(id, next(row))
    if (isQuiet) wake()
    else notify(id)
  }
  const move = (row: Run, to: Phase, at: number, reason: string, failure: Run["failure"]): Run => {
    if (!canEnter(row.phase, to, row.requeues)) throw new Error(`${row.phase} to ${to}`)
    const requeued = fallsBack(row.phase, to)
    return {
      ...row,
      phase: to,
      phaseSince: at,
      failure,
      requeues: row.requeues + (requeued ? 1 : 0),
      revision: requeued && row.revision !== null ? { ...row.revision, checks: null, measured: null, benchmark: null } : row.revision,
      endedAt: isFinished(to) ? at : null,
      history: [...row.history, { phase: to, at, reason }]
    }
  }
  const revised = (id: Run["id"], part: Partial<RunRevision>) => changeOwn(id, (row) => ({ ...row, revision: { ...(row.revision ?? revision), ...part } }))

  /** The node of the run's pod. */
  const nodeOf = (id: Run["id"]): string => {
    const spec = Option.getOrUndefined(kube.find("Pod", enginePodName(id)))?.spec
    return Predicate.isObject(spec) ? String(spec.nodeName) : ""
  }

  const runs = Runs.of({
    ping: Effect.void,
    observe: (id) =>
      Effect.suspend(() => {
        reads.push(id)
        return Effect.as(
          afterRead,
          Option.map(Option.fromNullishOr(rows.get(id)), (row) => withRelated(row, [...rows.values()]))
        )
      }),
    live: Effect.sync(() => [...rows.values()].map(({ id, orgId }) => ({ id, orgId }))),
    measuredStarts: () => Effect.succeed([]),
    earlierBenchmarks: () => Effect.succeed([]),
    usedUp: () => Effect.sync(() => usedUp),
    reservations: Effect.succeed([]),
    changes: Stream.unwrap(
      Effect.map(
        Effect.acquireRelease(Queue.unbounded<Run["id"]>(), (queue) => Effect.sync(() => changed.splice(changed.indexOf(queue), 1))),
        (queue) => {
          changed.push(queue)
          return Stream.map(Stream.fromQueue(queue), (id) => ({ id, orgId: rows.get(id)?.orgId ?? null }))
        }
      )
    ),
    enter: ({ failure, from, id, reason, to }) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (superseded || rows.get(id)?.phase !== from) return false
        changeOwn(id, (row) => move(row, to, now, reason, failure ?? null))
        yield* gate(`enter ${to}`)
        return true
      }),
    recordScreening: ({ id }) =>
      Effect.as(
        Effect.andThen(
          Effect.sync(() => revised(id, { facts: factsOf(id), engineImage: null, engineDigest: null })),
          gate("record screening")
        ),
        true
      ),
    noteWeights: () => gate("note weights"),
    forgetWeights: () => gate("forget weights"),
    recordEngineImage: (id, _, { digest, image }) =>
      Effect.gen(function* () {
        const row = rows.get(id)
        const { engineDigest = null, engineImage = null } = row?.revision ?? {}
        if (row === undefined || (engineImage !== null && (engineImage !== image || engineDigest !== null || digest === null))) return false
        // The writer continues by itself, without a notification.
        rows.set(id, { ...row, revision: { ...(row.revision ?? revision), engineImage: image, engineDigest: digest } })
        yield* gate("record image")
        return true
      }),
    noteNodeFault: (id, _, fault) =>
      Effect.gen(function* () {
        const at = yield* Clock.currentTimeMillis
        change(id, (row) => ({
          ...row,
          nodeFaults: [...row.nodeFaults.filter(({ code, node }) => code !== fault.code || node !== fault.node), { ...fault, at }]
        }))
        yield* gate("note node fault")
      }),
    avoidedNodes: (id) => Effect.sync(() => (rows.get(id)?.nodeFaults ?? []).map(({ node }) => node)),
    likelihood: () => Effect.succeed(null),
    earlierTrials: () => Effect.succeed([]),
    reference: () => Effect.succeed(Option.none()),
    referenceState: ({ commit }) => Effect.sync(() => ({ isKnown: references.length > 0, missing: causes.get(commit) ?? null })),
    addReference: (_, added) =>
      Effect.gen(function* () {
        const isAdded = references.length === 0
        if (isAdded) references.push(added)
        yield* gate("add reference")
        return isAdded
      }),
    noteMissingReference: ({ commit }, code) =>
      Effect.gen(function* () {
        const isNew = !causes.has(commit)
        causes.set(commit, code)
        yield* gate(`note ${code}`)
        return isNew
      }),
    recordStart: () => gate("record start"),
    recordChecks: (id) =>
      Effect.as(
        Effect.andThen(
          Effect.sync(() => revised(id, { checks: reportOn(nodeOf(id)) })),
          gate("record checks")
        ),
        true
      ),
    recordMeasured: (id) =>
      Effect.as(
        Effect.andThen(
          Effect.sync(() => revised(id, { measured })),
          gate("record measured")
        ),
        true
      ),
    recordBenchmark: (id) =>
      Effect.as(
        Effect.andThen(
          Effect.sync(() => revised(id, { benchmark })),
          gate("record benchmark")
        ),
        true
      ),
    publishEndpoints: (id, _, endpoints) =>
      Effect.gen(function* () {
        published.push(endpoints.length)
        publishedUids.push(...endpoints.map(({ podUid }) => podUid ?? ""))
        if (!superseded) change(id, (row) => ({ ...row, endpoints: endpoints.map(({ pod, url }) => ({ pod, url, reachable: true })) }))
        yield* gate("publish")
        return !superseded
      }),
    activate: ({ from, id }) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const row = rows.get(id)
        if (row?.phase !== from || row.revision === null) return false
        const active: RunRevision = { ...row.revision, status: row.serve ? "active" : "draft" }
        changeOwn(id, (current) => ({ ...move(current, "activated", now, "Serving", null), revision: active }))
        // The model's previous serving revision has an engine to give up.
        const isEarlier = (other: Run) => row.serve && other.id !== id && other.model === row.model && other.revision?.status === "active"
        for (const other of isQuiet ? [...rows.values()].filter(isEarlier) : [])
          change(other.id, (current) => ({ ...current, revision: { ...(current.revision ?? revision), status: "superseded" } }))
        yield* gate("activate")
        return true
      }),
    modelLoads: Effect.sync(() =>
      [...rows.values()].flatMap(({ id, modelId, replicas = 1, scaling = null }) =>
        scaling === null || requests === null ? [] : { run: id, modelId, replicas, requests, oldestReport: 0, newestReport: 0 }
      )
    ),
    setReplicas: ({ from, modelId, replicas }) =>
      Effect.gen(function* () {
        const row = [...rows.values()].find((each) => each.modelId === modelId && each.replicas === from)
        if (row !== undefined) rows.set(row.id, { ...row, replicas })
        yield* gate(`scale to ${replicas}`)
        return row !== undefined
      }),
    moveAnswers: () => Effect.succeedNone,
    moveBack: () => Effect.succeed(false),
    recordEngines: (modelId, _, engines) =>
      Effect.sync(() => {
        for (const row of rows.values()) if (row.modelId === modelId) rows.set(row.id, { ...row, engines })
      }),
    recordProgress: (id, _, progress) =>
      Effect.gen(function* () {
        const at = yield* Clock.currentTimeMillis
        const row = rows.get(id)
        // Without a notification.
        if (row !== undefined) rows.set(id, { ...row, progress: { ...progress, at } })
        yield* gate("record progress")
      }),
    hubToken: () => Effect.succeed(Option.map(token, (text) => Redacted.make(text))),
    release: () =>
      Effect.andThen(
        Effect.sync(() => released++),
        gate("release")
      )
  })

  /** The request of a reference does not matter here. */
  const createReferenceJob = ({ podClass, run: { revision: placed } }: Gathered) => {
    const plan = placed === null || podClass === null ? null : referencePlan(placed, podClass, { needsGpu: false })
    if (placed === null || plan === null) return Effect.die("no references are computed")
    const job = referenceJob({ plan, revision: placed, settings, weightsClaim: "weights" }, { sequences: [[1, 2]], drawn: 0, prompts: [], new_tokens: 1 })
    return Effect.as(
      Effect.catch(kube.service.create(Job, job), () => Effect.void),
      true
    )
  }

  const start: StartWork = (gathered, { merged, pod, reference }, kind) => {
    const {
      bootVerdicts,
      heldReports,
      mergedAnswers,
      run: { id, orgId }
    } = gathered
    worked.push(
      pod === null ? kind : `${kind} of ${pod.merge === null ? "the model" : "the merged model"}${merged === "answered" ? ", which is compared" : ""}`
    )
    wake()
    if (kind === "fidelity") {
      const answered = { answers: ["42"], scores: null, merged: { withinUlpMin: 1, othersEqual: true }, baseQuantized: false, everyModule: true }
      return Effect.sync(() => void mergedAnswers.set(id, answered))
    }
    if (kind === "boot" && pod !== null)
      return Effect.andThen(
        patience,
        Effect.map(Clock.currentTimeMillis, (at) => keepVerdict(bootVerdicts, pod, { outcome: answersOf(pod), message: "Found.", at }))
      )
    if (kind === "checking" && pod !== null && isComing(reference)) {
      const findings = { report, likelihood: null, seconds: 1 }
      const hold = Effect.map(Clock.currentTimeMillis, (since) => void heldReports.set(id, { with: whichStart(pod), since, findings }))
      return Effect.andThen(patience, hold)
    }
    const results: Record<Exclude<WorkKind, "fidelity" | "boot">, Effect.Effect<boolean>> = {
      screening: runs.recordScreening({
        id,
        orgId,
        facts,
        settings: revision.settings,
        engineVersion: "1",
        engineImage: "reference:1",
        estimate: revision.estimate,
        capabilities: modelCapabilities(nothingServed, revision.facts)
      }),
      preparation: createReferenceJob(gathered),
      checking: runs.recordChecks(id, orgId, report),
      comparing: runs.recordChecks(id, orgId, report),
      measuring: runs.recordMeasured(id, orgId, measured, kvCapacityRow(measured, revision.settings.max_context, true)),
      benchmarking: runs.recordBenchmark(id, orgId, benchmark, benchmarkRow(benchmark))
    }
    return Effect.andThen(patience, kind === "boot" ? Effect.void : Effect.asVoid(results[kind]))
  }

  kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": "1" }, conditions: [{ type: "Ready", status: "True" }] } })
  kube.add("CustomResourceDefinition", "modeldeployments.seatrial.dev", {})
  kube.add("HostClass", hostClass.name, {
    spec: { runtimes: hostClass.runtimes, gpuPool: hostClass.gpu_pool, gpuCount: 1, gpuMemoryBytes: 2 ** 30, pricePerGpuHour: "1", bootDeadlineSeconds: 60 }
  })
  const podStatus = () =>
    story === "unschedulable"
      ? { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/1 nodes are available." }] }
      : story === "starting"
        ? {
            phase: "Running",
            podIP: "127.0.3.1",
            conditions: [scheduled, { type: "Ready", status: "False" }],
            containerStatuses: [{ ...containerRuns, ready: false }]
          }
        : { phase: "Running", podIP: "127.0.3.1", conditions: [scheduled, { type: "Ready", status: "True" }], containerStatuses: [containerRuns] }
  kube.onWrite((write) => {
    wake()
    const [verb, kind, name] = write.split(" ")
    if ((verb !== "apply" && verb !== "create") || name === undefined) return
    if (kind === "Job" && name.startsWith("reference-")) referenceStory(name)
    else if (kind === "Job") kube.setStatus("Job", name, { conditions: [{ type: "Complete", status: "True" }] })
    if (kind === "Pod" && story !== "gated") {
      const pod = kube.find("Pod", name)
      const spec = Option.isSome(pod) && Predicate.isObject(pod.value.spec) ? pod.value.spec : {}
      // Like a scheduler: avoided nodes are used only if there are no others.
      const avoided = JSON.stringify(spec.affinity ?? "")
      const nodeName = kube.names("Node").find((node) => !avoided.includes(`"${node}"`)) ?? "node-1"
      if (story !== "unschedulable") kube.add("Pod", name, { spec: { ...spec, nodeName } })
      kube.setStatus("Pod", name, podStatus())
    }
  })

  const engines = HttpClient.make((request) =>
    running === null
      ? Effect.fail(new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request }) }))
      : Effect.succeed(HttpClientResponse.fromWeb(request, new Response(`vllm:num_requests_running ${running}\n`)))
  )
  const applied = makeMemoryApplied({ rows, move, notify, gate })
  const layer = Layer.mergeAll(
    Layer.succeed(Runs, runs),
    Layer.succeed(AppliedResources, applied.service),
    Layer.succeed(
      HostClasses,
      HostClasses.of({
        list: Effect.succeed([]),
        capacities: Effect.succeed(new Map()),
        recordCapacities: () => Effect.void,
        replaceAll: (all) => Effect.sync(() => void classes.push(all.map(({ name }) => name).join(",")))
      })
    ),
    Layer.succeed(KubeClient, kube.service),
    Layer.mock(GpuHolds)({
      open: Effect.succeed([]),
      place: () => Effect.succeed(true),
      release: () => Effect.void,
      silent: () => Effect.void,
      failing: () => Effect.void,
      recordObservation: Effect.void
    }),
    Layer.mock(Decisions)({ record: (_, rows) => Effect.sync(() => void decided.push(...rows)), removeOlder: () => Effect.succeed(0) }),
    Layer.mock(Sentinels)({
      alarmed: Effect.sync(() => alarmed),
      read: () => Effect.succeedNone,
      save: () => Effect.void
    }),
    Layer.mock(UnsentAlarms)({}),
    Layer.mock(Hub)({}),
    Layer.succeed(HttpClient.HttpClient, engines)
  )

  /** Waits until the condition holds. Checked after every write. */
  const until = Effect.fnUntraced(function* (holds: () => boolean) {
    while (!holds()) {
      yield* changes.await
      changes.closeUnsafe()
    }
  })

  return {
    kube,
    writes,
    /** The recorded decisions. */
    decided,
    reads,
    published,
    publishedUids,
    worked,
    classes,
    row: () => rows.get(run.id) ?? run,
    /** Adds runs of other models, and a node with GPUs for them. */
    grow: (ids: ReadonlyArray<Run["id"]>) => {
      for (const id of ids) rows.set(id, { ...run, id, engineRun: id })
      kube.add("Node", "node-2", { status: { allocatable: { "nvidia.com/gpu": String(ids.length) }, conditions: [{ type: "Ready", status: "True" }] } })
    },
    /** Adds a run. */
    add: (row: Run) => {
      rows.set(row.id, row)
      notify(row.id)
    },
    released: () => released,
    setAfterRead: (next: Effect.Effect<void>) => {
      afterRead = next
    },
    supersede: () => {
      superseded = true
    },
    /** The requests that each engine reports; null if it does not answer, as on a closed port. */
    setRunning: (next: typeof running) => {
      running = next
    },
    /** The requests that gateways report for each model with limits; null if they report nothing. */
    setRequests: (next: number | null) => {
      requests = next
    },
    setAlarmed: (next: typeof alarmed) => {
      alarmed = next
    },
    setReport: (next: (node: string) => CheckReport) => {
      reportOn = next
    },
    setAnswers: (next: typeof answersOf) => {
      answersOf = next
    },
    /** The organization may spend again with null. */
    setUsedUp: (next: typeof usedUp) => {
      usedUp = next
    },
    references,
    noReference: () => [...causes.values()][0] ?? null,
    setFacts: (next: typeof factsOf) => {
      factsOf = next
    },
    setReferenceStory: (next: typeof referenceStory) => {
      referenceStory = next
    },
    setQuiet: () => {
      isQuiet = true
    },
    setPatience: (next: Effect.Effect<void>) => {
      patience = next
    },
    nodeOf: () => nodeOf(run.id),
    setStory: (next: PodStory) => {
      story = next
    },
    /** All starting engines become ready. */
    finishStarts: () => {
      for (const name of kube.names("Pod")) {
        const status = Option.getOrUndefined(kube.find("Pod", name))?.status
        if (!Predicate.isObject(status) || !JSON.stringify(status).includes('"type":"Ready","status":"False"')) continue
        kube.setStatus("Pod", name, { ...status, conditions: [scheduled, { type: "Ready", status: "True" }], containerStatuses: [containerRuns] })
      }
    },
    change: (next: (row: Run) => Run) => change(run.id, next),
    /** The database no longer contains the run, as if it were another one. */
    forget: () => {
      rows.clear()
      applied.bindings.clear()
    },
    rows: () => [...rows.values()],
    applied,
    made: applied.made,
    /** A cancel without a notification. */
    cancelUnheard: (now: number) => {
      const row = rows.get(run.id)
      if (row !== undefined) rows.set(run.id, move(row, "cancelled", now, "cancelled", null))
    },
    cancel: (now: number, id = run.id) => change(id, (row) => move(row, "cancelled", now, "cancelled", null)),
    until,
    /** The status that the custom resource shows. */
    mirrored: () => {
      const status = Option.getOrUndefined(kube.find("ModelDeployment", kube.names("ModelDeployment")[0] ?? ""))?.status
      return Predicate.isObject(status) ? status : null
    },
    settings,
    start,
    /** What an operator needs of the world. */
    services: layer,
    /** Runs an operator until `effect` ends, then stops it. `more`: settings that differ. */
    operate: <A, E>(effect: Effect.Effect<A, E>, more: Partial<OperatorSettings> = {}) =>
      Effect.raceFirst(effect, Effect.orDie(Effect.scoped(control({ ...settings, ...more }, start)))).pipe(Effect.provide(layer)),
    /** Runs an operator that dies right after its nth write from now. Returns false if it reached `done` before. */
    operateUntilWrite: Effect.fnUntraced(function* (count: number, done: () => boolean) {
      crashAt = writes.length + count
      crashed = Deferred.makeUnsafe<void>()
      const scope = yield* Scope.make()
      const died = Effect.as(Deferred.await(crashed), true)
      const ended = Effect.as(until(done), false)
      const result = yield* Effect.raceFirst(Effect.raceFirst(died, ended), Effect.orDie(Scope.provide(control(settings, start), scope))).pipe(
        Effect.provide(layer)
      )
      yield* Scope.close(scope, Exit.void)
      crashAt = Number.POSITIVE_INFINITY
      return result
    })
  }
}
