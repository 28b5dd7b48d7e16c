import type { KubeClient } from "@seatrial/kube"
import { Deferred, Effect, Fiber, Option, Queue, Schedule, Schema, type Scope } from "effect"
import { type ContainerHost, type LocalImage, runContainer } from "./ContainerRunner.ts"
import { tokenLifetimes } from "./clusterAccess.ts"
import { now } from "./kubeTime.ts"
import type { SimulatedNode } from "./NodeRegistration.ts"
import type { PodAddresses } from "./PodAddresses.ts"
import { podFolder, prepare, removeFolder } from "./PodFolder.ts"
import { BoundPod, type ContainerStatus, isFinished, namespaceOf, type Terminated, uidOf } from "./PodObject.ts"
import { makeStatusWriter } from "./PodStatusWriter.ts"
import { type ContainerRecord, fresh, type PodFacts } from "./podStatus.ts"
import { recordEvent } from "./recordEvent.ts"

/** What the workers of one agent share. */
export interface PodWorkerShared {
  readonly kube: KubeClient["Service"]
  readonly state: string
  readonly hostIP: string
  readonly images: Readonly<Record<string, LocalImage>>
  readonly addresses: PodAddresses
  readonly nodes: ReadonlyArray<SimulatedNode>
  /** See `NodeAgentOptions`. */
  readonly apiServer?: string | undefined
}

/** A message for a worker: the current pod, or its removal from the server. */
export type PodNews = { readonly _tag: "Pod"; readonly pod: BoundPod } | { readonly _tag: "Gone" }

const defaultGrace = 30
const Deletion = Schema.Struct({ deletionGracePeriodSeconds: Schema.Number })
const graceOf = (pod: BoundPod) =>
  Option.match(Schema.decodeUnknownOption(Deletion)(pod.metadata), {
    onNone: () => pod.spec.terminationGracePeriodSeconds ?? defaultGrace,
    onSome: ({ deletionGracePeriodSeconds }) => deletionGracePeriodSeconds
  })

/** The state of a container whose process ended with an earlier agent. */
const recover = (status: ContainerStatus, policy: string, at: string): ContainerRecord => {
  const last = status.lastState?.terminated
  const base = { ...fresh, restartCount: status.restartCount, ...(last === undefined ? {} : { last }) }
  const done = status.state?.terminated
  if (done !== undefined) {
    const over = policy === "Never" || (policy === "OnFailure" && done.exitCode === 0)
    return over ? { ...base, phase: { _tag: "Terminated", terminated: done }, over } : { ...base, last: done, restartCount: status.restartCount + 1 }
  }
  const running = status.state?.running
  if (running === undefined) return base
  const lost: Terminated = {
    exitCode: 255,
    reason: "Unknown",
    message: "the node's agent stopped together with its containers",
    startedAt: running.startedAt ?? at,
    finishedAt: at
  }
  return policy === "Never"
    ? { ...base, phase: { _tag: "Terminated", terminated: lost }, over: true }
    : { ...base, last: lost, restartCount: status.restartCount + 1 }
}

/**
 * Manages one pod from its binding to its removal: runs its containers, maintains its status, and ends it gracefully.
 * Interrupting it ends the processes and leaves the pod unchanged, so that the next agent continues.
 */
export const runPod = Effect.fnUntraced(function* (
  shared: PodWorkerShared,
  first: BoundPod,
  inbox: Queue.Dequeue<PodNews>
): Effect.fn.Return<void, never, Scope.Scope> {
  const { kube, state } = shared
  const uid = uidOf(first)
  const { name } = first.metadata
  const namespace = namespaceOf(first)
  const policy = first.spec.restartPolicy ?? "Always"
  const folder = podFolder(state, uid)
  const terminating = yield* Deferred.make<number>()

  // As in a kubelet, before the server removes the pod. If the agent is killed in between, it happens again.
  const forget = removeFolder(state, uid).pipe(Effect.andThen(Effect.sync(() => shared.addresses.release(uid))))
  const remove = kube.remove(BoundPod, name, namespace, { uid, gracePeriodSeconds: 0 }).pipe(
    Effect.retry({
      while: (error) => error.reason === "Retryable",
      schedule: Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("5 seconds")])
    }),
    Effect.catch((error) => Effect.logWarning(`Pod ${namespace}/${name} could not be removed: ${error.message}`))
  )
  /** Waits until the server requests the deletion. */
  const deletion = Effect.gen(function* () {
    while (true) {
      const news = yield* Queue.take(inbox)
      if (news._tag === "Gone") return "gone" as const
      if (news.pod.metadata.deletionTimestamp !== undefined) return graceOf(news.pod)
    }
  })

  if (isFinished(first)) {
    if (first.metadata.deletionTimestamp === undefined && (yield* deletion) === "gone") return yield* forget
    return yield* Effect.andThen(forget, remove)
  }

  const podIP = shared.addresses.take(uid)
  if (podIP === undefined) return yield* Effect.logError(`No loopback address is left for pod ${namespace}/${name}`)
  const at = yield* now
  const records = new Map<string, ContainerRecord>()
  for (const status of first.status?.initContainerStatuses ?? []) records.set(status.name, recover(status, policy === "Always" ? "OnFailure" : policy, at))
  for (const status of first.status?.containerStatuses ?? []) records.set(status.name, recover(status, policy, at))
  const lost = [...records.values()].some(({ phase, over }) => over && phase._tag === "Terminated" && phase.terminated.exitCode === 255)
  let failed: PodFacts["failed"] = lost
    ? { reason: "Terminated", message: "Pod was terminated in response to imminent node shutdown.", disruption: true }
    : undefined
  const startTime = first.status?.startTime ?? at
  const facts = (): PodFacts => ({ podIP, hostIP: shared.hostIP, startTime, records, ...(failed === undefined ? {} : { failed }) })
  const writer = yield* makeStatusWriter(kube, first, facts)

  const host = (volumes: ReadonlyMap<string, string>): ContainerHost => ({
    kube,
    images: shared.images,
    pod: first,
    folder,
    podIP,
    hostIP: shared.hostIP,
    apiServer: shared.apiServer,
    gpuMemoryMiB: shared.nodes.find(({ name: node }) => node === first.spec.nodeName)?.memoryMiB,
    volumes,
    record: (container) => records.get(container) ?? fresh,
    update: (container, change) =>
      Effect.suspend(() => {
        records.set(container, { ...(records.get(container) ?? fresh), ...change })
        return writer.changed
      }),
    event: (type, reason, message) =>
      recordEvent(kube, {
        object: { apiVersion: "v1", kind: "Pod", metadata: first.metadata },
        component: "seatrial-node-agent",
        type,
        reason,
        message
      }),
    terminating
  })

  const volumes = Effect.gen(function* () {
    while (true) {
      const prepared = yield* prepare(kube, state, first, { podIP, hostIP: shared.hostIP }).pipe(Effect.result)
      if (prepared._tag === "Success") return Option.some(prepared.success)
      const { reason, message } = prepared.failure
      for (const container of first.spec.containers) records.set(container.name, { ...fresh, phase: { _tag: "Waiting", reason, message } })
      yield* writer.changed
      yield* Effect.sleep("5 seconds")
    }
  }).pipe(Effect.raceFirst(Effect.as(Deferred.await(terminating), Option.none<ReadonlyMap<string, string>>())))

  const life = Effect.gen(function* () {
    yield* writer.changed
    if (failed !== undefined) return
    const volumePaths = yield* volumes
    if (Option.isNone(volumePaths)) return
    // Tokens are renewed in their files long before they expire.
    for (const lifetime of tokenLifetimes(first)) {
      yield* prepare(kube, state, first, { podIP, hostIP: shared.hostIP }).pipe(
        Effect.ignore,
        Effect.delay(`${Math.floor(lifetime * 0.8)} seconds`),
        Effect.forever,
        Effect.forkScoped
      )
    }
    const around = host(volumePaths.value)
    for (const container of first.spec.initContainers ?? []) {
      if (!around.record(container.name).over) yield* runContainer(around, container, policy === "Always" ? "OnFailure" : policy)
      const { phase } = around.record(container.name)
      if (phase._tag !== "Terminated" || phase.terminated.exitCode !== 0) return
    }
    yield* Effect.forEach(
      first.spec.containers.filter((container) => !around.record(container.name).over),
      (container) => runContainer(around, container, policy),
      { concurrency: "unbounded", discard: true }
    )
  })

  if (first.spec.activeDeadlineSeconds !== undefined && first.spec.activeDeadlineSeconds !== null) {
    const left = Math.max(0, Date.parse(startTime) + first.spec.activeDeadlineSeconds * 1_000 - Date.parse(at))
    yield* Effect.sleep(left).pipe(
      Effect.andThen(
        Effect.suspend(() => {
          failed = { reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" }
          return Effect.andThen(Deferred.succeed(terminating, graceOf(first)), writer.changed)
        })
      ),
      Effect.forkScoped
    )
  }

  if (first.metadata.deletionTimestamp !== undefined) yield* Deferred.succeed(terminating, graceOf(first))
  const running = yield* Effect.forkScoped(life)
  const grace = first.metadata.deletionTimestamp === undefined ? yield* deletion : graceOf(first)
  if (grace !== "gone") {
    yield* Deferred.succeed(terminating, grace)
    // A pod that is deleted by force is not awaited.
    yield* Effect.raceFirst(Fiber.await(running), Effect.repeat(deletion, { until: (news) => news === "gone" }))
  }
  yield* Fiber.interrupt(running)
  if (grace !== "gone") yield* writer.flush
  yield* forget
  if (grace !== "gone") yield* remove
}, Effect.scoped)
