import type { Server } from "node:http"
import { fromKey, KubeClient, type KubeError, Node, Pod, Reflector } from "@seatrial/kube"
import { Cause, Effect, Option, Schedule, Semaphore, Stream } from "effect"
import { simulatedProduct } from "../cluster/simulatedHostClass.ts"
import { takeNetwork } from "../cluster/takeNetwork.ts"
import { startEngine, stopEngine } from "./StandInEngine.ts"

const resources = { cpu: "64", memory: "256Gi", "ephemeral-storage": "1000Gi", pods: "500" }
const rfc3339 = () => new Date().toISOString().replace(/\.\d+/, "")

const nodes = ["gpu-0", "gpu-1"]
const gpusOfNode = "16"

/** The condition that node-problem-detector sets by a rule for the driver's log. */
export const xid = { type: "XIDError", status: "True", reason: "XIDError", message: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus." } as const

interface Engine {
  readonly server: Server
  readonly address: string
  readonly uid: string
  readonly pod: Pod
  readonly node: string
  /** Its start: either it becomes ready after loading, or a fault comes first. */
  course: "loads" | "is ready" | "is disturbed"
  /** The state of its container; null if its pod has failed. */
  at: { readonly ready: boolean; readonly restarts: number; readonly last: object } | null
  /** One status at a time, so that a later one is not overwritten. */
  readonly turn: Semaphore.Semaphore
}

/** Repeats a write that a busy API server refused. */
const again = <A>(request: Effect.Effect<A, KubeError>) =>
  Effect.retry(request, { while: ({ reason }) => reason === "Retryable", schedule: Schedule.spaced("200 millis"), times: 300 })

/**
 * Replaces the kubelets of two GPU nodes: an engine pod is a stand-in engine with its own loopback address, and every other
 * pod succeeds at once. Writes statuses as a kubelet does, and removes a deleted pod when its requests have ended.
 */
export const makeKubelet = Effect.fnUntraced(function* (kube: KubeClient["Service"], namespace: string) {
  const network = yield* takeNetwork
  let addresses = 0
  const engines = new Map<string, Engine>()
  const down = new Set<string>()
  const sick = new Set<string>()
  const placed = new Set<string>()
  let mostPlaced = 0
  const spoiled = new Set<string>()
  let loadsForEver = false
  const lock = yield* Semaphore.make(1)
  const scope = yield* Effect.scope
  const pods = yield* Effect.provideService(Reflector.make(Pod, { namespace }), KubeClient, kube)

  const setNode = (name: string, ready: boolean) =>
    Effect.gen(function* () {
      const labels = { "kubernetes.io/hostname": name, "nvidia.com/gpu.product": simulatedProduct }
      yield* again(kube.apply(Node, { apiVersion: "v1", kind: "Node", metadata: { name, labels } }))
      const conditions = [
        { type: "Ready", status: ready ? "True" : "Unknown", reason: ready ? "KubeletReady" : "NodeStatusUnknown", lastTransitionTime: rfc3339() },
        ...(sick.has(name) ? [xid] : [])
      ]
      const status = { capacity: { ...resources, "nvidia.com/gpu": gpusOfNode }, allocatable: { ...resources, "nvidia.com/gpu": gpusOfNode }, conditions }
      const object = { apiVersion: "v1", kind: "Node", metadata: { name }, status }
      yield* again(kube.applyStatus(Node, object))
    })
  const writeStatus = (pod: Pod, status: object) => {
    const object = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: pod.metadata.name, namespace, ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }) },
      status
    }
    return kube.applyStatus(Pod, object)
  }
  const container = (pod: Pod) => pod.spec?.containers?.[0]?.name ?? "engine"
  const running = ({ address, node, pod }: Engine, { last, ready, restarts }: NonNullable<Engine["at"]>) => ({
    phase: "Running",
    podIP: address,
    podIPs: [{ ip: address }],
    startTime: rfc3339(),
    conditions: [
      { type: "PodScheduled", status: "True", lastTransitionTime: rfc3339() },
      // For a silent node Kubernetes sets its pods to not ready, and does not change the readiness of containers.
      { type: "Ready", status: ready && !down.has(node) ? "True" : "False", lastTransitionTime: rfc3339() },
      { type: "ContainersReady", status: ready ? "True" : "False", lastTransitionTime: rfc3339() }
    ],
    containerStatuses: [
      {
        name: container(pod),
        image: "x",
        imageID: "x",
        ready,
        started: true,
        restartCount: restarts,
        state: { running: { startedAt: rfc3339() } },
        lastState: last
      }
    ]
  })
  /** Writes the current status of an engine. */
  const tellOf = (engine: Engine) =>
    engine.turn.withPermits(1)(
      Effect.suspend(() => (engine.at === null ? Effect.void : Effect.asVoid(again(writeStatus(engine.pod, running(engine, engine.at))))))
    )

  const tend = Effect.fnUntraced(function* (name: string) {
    const pod = Option.getOrUndefined(yield* pods.get(name, namespace))
    const engine = engines.get(name)
    if (engine !== undefined && (pod === undefined || pod.metadata.uid !== engine.uid || pod.metadata.deletionTimestamp !== undefined)) {
      engines.delete(name)
      yield* Effect.promise(() => stopEngine(engine.server))
    }
    const node = pod?.spec?.nodeName
    if (pod === undefined || node === undefined) return
    if (name.includes("engine")) {
      placed.add(pod.metadata.uid ?? "")
      const all = yield* pods.list()
      mostPlaced = Math.max(mostPlaced, all.filter(({ metadata, spec }) => metadata.name.includes("engine") && spec?.nodeName !== undefined).length)
    }
    if (down.has(node)) return
    if (pod.metadata.deletionTimestamp !== undefined) {
      return yield* kube.remove(Pod, name, namespace, { gracePeriodSeconds: 0, ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }) })
    }
    if (!name.includes("engine")) {
      if (pod.status?.phase === "Succeeded") return
      const terminated = { exitCode: 0, reason: "Completed", startedAt: rfc3339(), finishedAt: rfc3339() }
      const containerStatuses = [{ name: container(pod), image: "x", imageID: "x", ready: false, restartCount: 0, state: { terminated } }]
      yield* writeStatus(pod, { phase: "Succeeded", containerStatuses })
      return
    }
    if (engines.has(name) || pod.status?.phase === "Failed") return
    const count = ++addresses
    const address = `${network}.${Math.floor(count / 250) + 1}.${(count % 250) + 1}`
    const server = yield* Effect.promise(() => startEngine(address, 8_000, () => [...spoiled].some((run) => name.startsWith(run))))
    const started: Engine = {
      server,
      address,
      uid: pod.metadata.uid ?? "",
      pod,
      node,
      course: loadsForEver ? "is disturbed" : "loads",
      at: { ready: false, restarts: 0, last: {} },
      turn: yield* Semaphore.make(1)
    }
    engines.set(name, started)
    yield* tellOf(started)
    // It loads its weights, long enough for the faults of starting engines.
    yield* Effect.sleep("400 millis").pipe(
      Effect.andThen(
        Effect.suspend(() => {
          if (started.course !== "loads") return Effect.void
          started.course = "is ready"
          started.at = { ready: true, restarts: 0, last: {} }
          return tellOf(started)
        })
      ),
      Effect.ignore,
      Effect.forkIn(scope)
    )
  })

  const tended = (name: string) =>
    again(lock.withPermits(1)(tend(name))).pipe(
      Effect.catchIf(
        ({ reason }) => reason === "NotFound" || reason === "Conflict",
        () => Effect.void
      )
    )
  yield* Effect.forEach(nodes, (name) => setNode(name, true))
  yield* Stream.runForEach(pods.changes, (key) => tended(fromKey(key).name)).pipe(
    Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("the kubelet ends", cause))),
    Effect.orDie,
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all([...engines.values()].map(({ server }) => server.closeAllConnections() ?? stopEngine(server))))
  )

  const tellOfAll = (node: string) =>
    Effect.forEach(
      [...engines.values()].filter((engine) => engine.node === node),
      (engine) => Effect.ignore(tellOf(engine)),
      { discard: true }
    )

  return {
    /** Uids of all engine pods that ever had a node. */
    placed,
    /** The most engine pods that had a node at once. */
    mostPlaced: () => mostPlaced,
    /** Whether engines that start from now on never finish loading. */
    holdStarts: (holds: boolean) => {
      loadsForEver = holds
    },
    /** From now on the engines of the run, named by its object, answer each request with an error. Their health checks pass. */
    spoil: (object: string) => void spoiled.add(`${object}-`),
    /** Whether the engine still loads. If so, it does not become ready by itself anymore: the fault came first. */
    takesLoading: (name: string) => {
      const engine = engines.get(name)
      if (engine?.course !== "loads") return false
      engine.course = "is disturbed"
      return true
    },
    /** The engine's container is killed for its memory, and starts again. */
    killForMemory: (name: string) =>
      Effect.gen(function* () {
        const terminated = { exitCode: 137, reason: "OOMKilled", finishedAt: rfc3339(), startedAt: rfc3339() }
        const engine = engines.get(name)
        if (engine === undefined || engine.at === null) return
        const restarts = engine.at.restarts + 1
        engine.at = { ready: false, restarts, last: { terminated } }
        yield* tellOf(engine)
        yield* Effect.sleep("300 millis")
        if (engine.at !== null) engine.at = { ready: true, restarts, last: { terminated } }
        yield* tellOf(engine)
      }).pipe(Effect.ignore),
    /** A GPU of the engine's node fails: the node gets a condition, and its device plugin fails the pod. Returns the repair. */
    failForGpu: (name: string) =>
      Effect.gen(function* () {
        const node = (yield* pods.get(name, namespace).pipe(Effect.map(Option.getOrUndefined)))?.spec?.nodeName
        if (node === undefined) return Effect.void
        sick.add(node)
        yield* setNode(node, !down.has(node))
        const engine = engines.get(name)
        if (engine !== undefined) {
          engine.at = null
          const failed = { phase: "Failed", reason: "UnexpectedAdmissionError", message: "Allocate failed due to no healthy devices present" }
          const status = { ...running(engine, { ready: false, restarts: 0, last: {} }), ...failed }
          yield* Effect.ignore(engine.turn.withPermits(1)(again(writeStatus(engine.pod, status))))
        }
        return Effect.orDie(Effect.suspend(() => (sick.delete(node) ? setNode(node, !down.has(node)) : Effect.void)))
      }).pipe(Effect.orDie),
    /** The node and its pods stop responding, and Kubernetes sets the pods to not ready. The node responds again after the given effect. */
    loseNode: (name: string, meanwhile: Effect.Effect<unknown>) =>
      Effect.gen(function* () {
        down.add(name)
        yield* setNode(name, false)
        yield* tellOfAll(name)
        yield* meanwhile
        down.delete(name)
        yield* setNode(name, true)
        yield* tellOfAll(name)
        for (const pod of yield* pods.list()) yield* tended(pod.metadata.name)
      }).pipe(Effect.orDie),
    /** Ends the engines of the node immediately, with their open requests. No status reports it. */
    cutPower: (node: string) => {
      for (const { node: own, server } of engines.values()) {
        if (own !== node) continue
        server.close()
        server.closeAllConnections()
      }
    },
    nodeOf: (name: string) => Effect.map(pods.get(name, namespace), (pod) => Option.getOrUndefined(pod)?.spec?.nodeName)
  }
})
