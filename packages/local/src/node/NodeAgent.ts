import { mkdir } from "node:fs/promises"
import { resolve } from "node:path"
import { KubeClient, type KubeError, type WatchEvent } from "@seatrial/kube"
import { Data, Effect, FiberMap, Layer, Queue, Schedule, Stream } from "effect"
import type { LocalImage } from "./ContainerRunner.ts"
import { type LogServerError, type LogServerTls, serveLogs } from "./LogServer.ts"
import { registerNode, type SimulatedNode } from "./NodeRegistration.ts"
import { PodAddresses } from "./PodAddresses.ts"
import { removeFolder } from "./PodFolder.ts"
import { BoundPod, isFinished, namespaceOf, uidOf } from "./PodObject.ts"
import { type PodNews, type PodWorkerShared, runPod } from "./PodWorker.ts"
import { endStale, knownPods } from "./staleProcesses.ts"

export interface NodeAgentOptions {
  /** The state folder. The agent owns the folders `pods` and `volumes` in it. */
  readonly directory: string
  readonly nodes: ReadonlyArray<SimulatedNode>
  /** The local equivalents of images by name without tag and digest, for instance `ghcr.io/seatrial/seatrial`. */
  readonly images: Readonly<Record<string, LocalImage>>
  /**
   * The first two numbers of the pods' loopback addresses, for instance `127.77`. Clusters on one machine need
   * different networks.
   */
  readonly network: string
  /**
   * The address of the API server for pods, for instance `https://127.0.0.1:6443`. Pods that mount a token of a
   * ServiceAccount get it in `KUBECONFIG`. Absent: pods get no address.
   */
  readonly apiServer?: string
  /** For the kubelet's log endpoint. A real API server uses TLS, the local cluster does not. */
  readonly tls?: LogServerTls
}

export class NodeAgentError extends Data.TaggedError("NodeAgentError")<{ readonly message: string; readonly cause: unknown }> {}

const hostIP = "127.0.0.1"

interface Worker {
  readonly namespace: string
  readonly name: string
  pod: BoundPod
  readonly inbox: Queue.Queue<PodNews>
}

/** The workers of the pods on this agent's nodes. */
const makeWorkers = Effect.fnUntraced(function* (shared: PodWorkerShared) {
  const workers = new Map<string, Worker>()
  const fibers = yield* FiberMap.make<string>()

  const startWorker = Effect.fnUntraced(function* (pod: BoundPod) {
    const uid = uidOf(pod)
    const worker: Worker = { namespace: namespaceOf(pod), name: pod.metadata.name, pod, inbox: yield* Queue.sliding<PodNews>(1) }
    workers.set(uid, worker)
    const work = runPod(shared, pod, worker.inbox).pipe(
      Effect.ensuring(Effect.sync(() => workers.delete(uid))),
      Effect.annotateLogs({ pod: `${worker.namespace}/${worker.name}` })
    )
    yield* FiberMap.run(fibers, uid, work)
  })
  const changed = Effect.fnUntraced(function* (pod: BoundPod) {
    const known = workers.get(uidOf(pod))
    if (known === undefined) return yield* startWorker(pod)
    known.pod = pod
    yield* Queue.offer(known.inbox, { _tag: "Pod", pod })
  })
  const removed = (uid: string) => {
    const worker = workers.get(uid)
    return worker === undefined ? Effect.void : Effect.asVoid(Queue.offer(worker.inbox, { _tag: "Gone" }))
  }
  const find = (namespace: string, name: string) => [...workers].find(([, worker]) => worker.namespace === namespace && worker.name === name)
  return {
    changed,
    removed,
    /** Removes the workers of a node whose pods are not in a complete list. */
    keepOnly: Effect.fnUntraced(function* (node: string, present: ReadonlySet<string>) {
      for (const [uid, worker] of workers) if (worker.pod.spec.nodeName === node && !present.has(uid)) yield* removed(uid)
    }),
    uidOf: (namespace: string, name: string) => find(namespace, name)?.[0],
    isRunning: (namespace: string, name: string) => {
      const worker = find(namespace, name)?.[1]
      return worker !== undefined && !isFinished(worker.pod)
    }
  }
})
type Workers = Effect.Success<ReturnType<typeof makeWorkers>>

/** Passes a change of the pods of a node to their workers. */
const passOn = (workers: Workers, node: string) =>
  Effect.fnUntraced(function* (event: WatchEvent<BoundPod>) {
    switch (event._tag) {
      case "Changed":
        return yield* workers.changed(event.object)
      case "Removed":
        return yield* workers.removed(uidOf(event.object))
      case "RemovedUnreadable":
        return yield* workers.removed(event.uid ?? "")
      case "Synced": {
        yield* workers.keepOnly(node, new Set([...event.items.map(uidOf), ...(event.unreadable ?? []).map(({ uid }) => uid ?? "")]))
        for (const pod of event.items) yield* workers.changed(pod)
      }
    }
  })

const selection = (node: SimulatedNode) => ({ fieldSelector: `spec.nodeName=${node.name}` })

/**
 * Removes what pods that no longer exist have left, and reserves the addresses of existing ones before any new one is
 * assigned.
 */
const restore = Effect.fnUntraced(function* ({ addresses, kube, nodes, state }: PodWorkerShared) {
  yield* endStale(state)
  const bound = (yield* Effect.forEach(nodes, (node) => kube.list(BoundPod, selection(node)))).flat()
  const alive = new Set(bound.map(uidOf))
  for (const uid of yield* knownPods(state)) if (!alive.has(uid)) yield* removeFolder(state, uid)
  for (const pod of bound) if (!isFinished(pod) && pod.status?.podIP !== undefined) addresses.keep(uidOf(pod), pod.status.podIP)
})

const make = Effect.fn("NodeAgent.make")(function* (options: NodeAgentOptions) {
  const kube = yield* KubeClient
  const { apiServer, images, nodes, tls } = options
  const state = resolve(options.directory)
  yield* Effect.tryPromise({
    try: () => mkdir(state, { recursive: true }),
    catch: (cause) => new NodeAgentError({ message: `The state folder ${state} cannot be created. Give the node agent a writable folder.`, cause })
  })
  const shared: PodWorkerShared = { kube, state, hostIP, images, addresses: new PodAddresses(options.network), apiServer, nodes }
  yield* restore(shared)

  const workers = yield* makeWorkers(shared)
  const port = yield* serveLogs({ state, address: hostIP, ...(tls === undefined ? {} : { tls }), uidOf: workers.uidOf, running: workers.isRunning })
  for (const node of nodes) {
    yield* registerNode(kube, node, hostIP, port)
    yield* kube.watch(BoundPod, selection(node)).pipe(
      Stream.runForEach(passOn(workers, node.name)),
      Effect.tapError((error) => Effect.logError(`Node ${node.name} cannot watch its pods: ${error.message}`)),
      Effect.retry(Schedule.spaced("5 seconds")),
      Effect.forkScoped
    )
  }
})

/**
 * Joins a cluster as simulated GPU nodes and runs the pods bound to them as local processes. The processes end with the
 * scope, within three seconds.
 */
export const NodeAgent = {
  layer: (options: NodeAgentOptions): Layer.Layer<never, NodeAgentError | LogServerError | KubeError, KubeClient> => Layer.effectDiscard(make(options))
}
