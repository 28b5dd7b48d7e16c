import type { KubeClient } from "@seatrial/kube"
import { Deferred, Effect, Fiber, Option, Queue, Schedule, Schema, type Scope } from "effect"
import { type ContainerHost, type LocalImage, runContainer } from "./ContainerRunner.ts"
import { tokenLifetimes } from "./clusterAccess.ts"
import { now } from "./kubeTime.ts"
import type { SimulatedNode } from "./NodeRegistration.ts"
import type { PodAddresses } from "./PodAddresses.ts"
import { podFolder, prepare, removeFolder } from "./PodFolder.ts"
import { BoundPod, type ContainerStatus, isFinished, namespaceOf, type Terminated, uidOf } from "./PodObject.ts"
import { makeStatusWriter, type PodStatusWriter } from "./PodStatusWriter.ts"
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

/** The restart policy of init containers, which end. */
const initPolicy = (policy: string) => (policy === "Always" ? "OnFailure" : policy)

/** The states of the containers that an earlier agent has run. */
const recoverRecords = ({ status }: BoundPod, policy: string, at: string): Map<string, ContainerRecord> =>
  new Map([
    ...(status?.initContainerStatuses ?? []).map((one) => [one.name, recover(one, initPolicy(policy), at)] as const),
    ...(status?.containerStatuses ?? []).map((one) => [one.name, recover(one, policy, at)] as const)
  ])

/** Waits until the server requests the deletion of the pod or has removed it. */
const deletionOf = Effect.fnUntraced(function* (inbox: Queue.Dequeue<PodNews>) {
  while (true) {
    const news = yield* Queue.take(inbox)
    if (news._tag === "Gone") return "gone" as const
    if (news.pod.metadata.deletionTimestamp !== undefined) return graceOf(news.pod)
  }
})

/**
 * Removes the pod's folder and its address, as in a kubelet before the server removes the pod. If the agent is killed
 * in between, it happens again.
 */
const forgetPod = ({ addresses, state }: PodWorkerShared, uid: string) =>
  removeFolder(state, uid).pipe(Effect.andThen(Effect.sync(() => addresses.release(uid))))

/** Lets the server remove a pod whose containers have ended. */
const removePod = ({ kube }: PodWorkerShared, pod: BoundPod) => {
  const { name } = pod.metadata
  const namespace = namespaceOf(pod)
  return kube.remove(BoundPod, name, namespace, { uid: uidOf(pod), gracePeriodSeconds: 0 }).pipe(
    Effect.retry({
      while: (error) => error.reason === "Retryable",
      schedule: Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("5 seconds")])
    }),
    Effect.catch((error) => Effect.logWarning(`Pod ${namespace}/${name} could not be removed: ${error.message}`))
  )
}

/** A pod while its containers run. */
interface RunningPod {
  readonly shared: PodWorkerShared
  readonly pod: BoundPod
  readonly policy: string
  readonly podIP: string
  readonly records: Map<string, ContainerRecord>
  /** Why the pod has failed as a whole, if it has. */
  readonly failure: { reason: PodFacts["failed"] }
  readonly startTime: string
  readonly writer: PodStatusWriter
  /** Completed with the seconds of the grace period when the pod must end. */
  readonly terminating: Deferred.Deferred<number>
}

const openPod = Effect.fnUntraced(function* (shared: PodWorkerShared, pod: BoundPod, podIP: string, at: string) {
  const policy = pod.spec.restartPolicy ?? "Always"
  const records = recoverRecords(pod, policy, at)
  const isLost = [...records.values()].some(({ phase, over }) => over && phase._tag === "Terminated" && phase.terminated.exitCode === 255)
  const failure: { reason: PodFacts["failed"] } = {
    reason: isLost ? { reason: "Terminated", message: "Pod was terminated in response to imminent node shutdown.", disruption: true } : undefined
  }
  const startTime = pod.status?.startTime ?? at
  const facts = (): PodFacts => ({
    podIP,
    hostIP: shared.hostIP,
    startTime,
    records,
    ...(failure.reason === undefined ? {} : { failed: failure.reason })
  })
  const writer = yield* makeStatusWriter(shared.kube, pod, facts)
  const running: RunningPod = { shared, pod, policy, podIP, records, failure, startTime, writer, terminating: yield* Deferred.make<number>() }
  return running
})

const hostOf = ({ pod, podIP, records, shared, terminating, writer }: RunningPod, volumes: ReadonlyMap<string, string>): ContainerHost => ({
  kube: shared.kube,
  images: shared.images,
  pod,
  folder: podFolder(shared.state, uidOf(pod)),
  podIP,
  hostIP: shared.hostIP,
  apiServer: shared.apiServer,
  gpuMemoryMiB: shared.nodes.find(({ name }) => name === pod.spec.nodeName)?.memoryMiB,
  volumes,
  record: (container) => records.get(container) ?? fresh,
  update: (container, change) =>
    Effect.suspend(() => {
      records.set(container, { ...(records.get(container) ?? fresh), ...change })
      return writer.changed
    }),
  event: (type, reason, message) =>
    recordEvent(shared.kube, {
      object: { apiVersion: "v1", kind: "Pod", metadata: pod.metadata },
      component: "seatrial-node-agent",
      type,
      reason,
      message
    }),
  terminating
})

const prepareVolumes = ({ pod, podIP, shared }: RunningPod) => prepare(shared.kube, shared.state, pod, { podIP, hostIP: shared.hostIP })

/** Creates the volumes, and tries again until it succeeds. None if the pod must end before. */
const awaitVolumes = (running: RunningPod) =>
  Effect.gen(function* () {
    while (true) {
      const prepared = yield* Effect.result(prepareVolumes(running))
      if (prepared._tag === "Success") return Option.some(prepared.success)
      const { reason, message } = prepared.failure
      for (const container of running.pod.spec.containers) running.records.set(container.name, { ...fresh, phase: { _tag: "Waiting", reason, message } })
      yield* running.writer.changed
      yield* Effect.sleep("5 seconds")
    }
  }).pipe(Effect.raceFirst(Effect.as(Deferred.await(running.terminating), Option.none<ReadonlyMap<string, string>>())))

/** Renews the tokens in their files long before they expire. */
const renewTokens = Effect.fnUntraced(function* (running: RunningPod) {
  for (const lifetime of tokenLifetimes(running.pod)) {
    yield* prepareVolumes(running).pipe(Effect.ignore, Effect.delay(`${Math.floor(lifetime * 0.8)} seconds`), Effect.forever, Effect.forkScoped)
  }
})

/** Runs the init containers one after the other. False if one has not succeeded. */
const runInitContainers = Effect.fnUntraced(function* ({ pod, policy }: RunningPod, host: ContainerHost) {
  for (const container of pod.spec.initContainers ?? []) {
    if (!host.record(container.name).over) yield* runContainer(host, container, initPolicy(policy))
    const { phase } = host.record(container.name)
    if (phase._tag !== "Terminated" || phase.terminated.exitCode !== 0) return false
  }
  return true
})

/** Runs the containers of a pod to their end. */
const runContainers = Effect.fnUntraced(function* (running: RunningPod) {
  yield* running.writer.changed
  if (running.failure.reason !== undefined) return
  const volumes = yield* awaitVolumes(running)
  if (Option.isNone(volumes)) return
  yield* renewTokens(running)
  const host = hostOf(running, volumes.value)
  if (!(yield* runInitContainers(running, host))) return
  yield* Effect.forEach(
    running.pod.spec.containers.filter((container) => !host.record(container.name).over),
    (container) => runContainer(host, container, running.policy),
    { concurrency: "unbounded", discard: true }
  )
})

/** Ends the pod at its deadline, if it has one. */
const enforceDeadline = Effect.fnUntraced(function* (running: RunningPod, at: string) {
  const { pod, startTime, terminating, writer } = running
  const seconds = pod.spec.activeDeadlineSeconds
  if (seconds === undefined || seconds === null) return
  const left = Math.max(0, Date.parse(startTime) + seconds * 1_000 - Date.parse(at))
  yield* Effect.sleep(left).pipe(
    Effect.andThen(
      Effect.suspend(() => {
        running.failure.reason = { reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" }
        return Effect.andThen(Deferred.succeed(terminating, graceOf(pod)), writer.changed)
      })
    ),
    Effect.forkScoped
  )
})

/**
 * Manages one pod from its binding to its removal: runs its containers, maintains its status, and ends it gracefully.
 * Interrupting it ends the processes and leaves the pod unchanged, so that the next agent continues.
 */
export const runPod = Effect.fnUntraced(function* (
  shared: PodWorkerShared,
  first: BoundPod,
  inbox: Queue.Dequeue<PodNews>
): Effect.fn.Return<void, never, Scope.Scope> {
  const uid = uidOf(first)
  const forget = forgetPod(shared, uid)
  const remove = removePod(shared, first)
  const deletion = deletionOf(inbox)
  const isDeleted = first.metadata.deletionTimestamp !== undefined
  if (isFinished(first)) {
    if (!isDeleted && (yield* deletion) === "gone") return yield* forget
    return yield* Effect.andThen(forget, remove)
  }

  const podIP = shared.addresses.take(uid)
  if (podIP === undefined) return yield* Effect.logError(`No loopback address is left for pod ${namespaceOf(first)}/${first.metadata.name}`)
  const at = yield* now
  const running = yield* openPod(shared, first, podIP, at)
  yield* enforceDeadline(running, at)
  if (isDeleted) yield* Deferred.succeed(running.terminating, graceOf(first))
  const containers = yield* Effect.forkScoped(runContainers(running))
  const grace = isDeleted ? graceOf(first) : yield* deletion
  if (grace !== "gone") {
    yield* Deferred.succeed(running.terminating, grace)
    // A pod that is deleted by force is not awaited.
    yield* Effect.raceFirst(Fiber.await(containers), Effect.repeat(deletion, { until: (news) => news === "gone" }))
  }
  yield* Fiber.interrupt(containers)
  if (grace !== "gone") yield* running.writer.flush
  yield* forget
  if (grace !== "gone") yield* remove
}, Effect.scoped)
