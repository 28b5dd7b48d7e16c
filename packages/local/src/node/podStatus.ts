import type { BoundPod, Condition, Container, Terminated } from "./PodObject.ts"

/** The state of one container. */
export type ContainerPhase =
  | { readonly _tag: "Waiting"; readonly reason: string; readonly message?: string }
  | { readonly _tag: "Running"; readonly startedAt: string }
  | { readonly _tag: "Terminated"; readonly terminated: Terminated }

/** What the agent knows about one container. */
export interface ContainerRecord {
  readonly phase: ContainerPhase
  readonly last?: Terminated
  readonly restartCount: number
  /** The image that it runs, after the start. */
  readonly imageId?: string
  /** Whether the startup probe has passed, if there is one. */
  readonly started: boolean
  readonly ready: boolean
  /** Whether it will not be started again. */
  readonly over: boolean
}

export const fresh: ContainerRecord = {
  phase: { _tag: "Waiting", reason: "ContainerCreating" },
  restartCount: 0,
  started: false,
  ready: false,
  over: false
}

export interface PodFacts {
  readonly podIP: string
  readonly hostIP: string
  readonly startTime: string
  readonly records: ReadonlyMap<string, ContainerRecord>
  /** The pod was ended from outside. It fails with this reason, even if its containers report another one. */
  readonly failed?: { readonly reason: string; readonly message: string; readonly disruption?: boolean }
}

const state = (phase: ContainerPhase) => {
  switch (phase._tag) {
    case "Waiting":
      return { waiting: { reason: phase.reason, ...(phase.message === undefined ? {} : { message: phase.message }) } }
    case "Running":
      return { running: { startedAt: phase.startedAt } }
    case "Terminated":
      return { terminated: phase.terminated }
  }
}

const containerStatus = (uid: string, container: Container, record: ContainerRecord) => ({
  name: container.name,
  image: container.image ?? "",
  imageID: record.imageId ?? "",
  containerID: record.phase._tag === "Waiting" && record.last === undefined ? "" : `process://${uid}/${container.name}/${record.restartCount}`,
  restartCount: record.restartCount,
  ready: record.ready,
  started: record.started,
  state: state(record.phase),
  lastState: record.last === undefined ? {} : { terminated: record.last }
})

const succeeded = (record: ContainerRecord) => record.phase._tag === "Terminated" && record.phase.terminated.exitCode === 0

const phaseOf = (inits: ReadonlyArray<ContainerRecord>, mains: ReadonlyArray<ContainerRecord>, facts: PodFacts) => {
  if (facts.failed !== undefined) return "Failed"
  if (inits.some((record) => record.over && !succeeded(record))) return "Failed"
  if (!inits.every((record) => record.over)) return "Pending"
  if (mains.every((record) => record.over)) return mains.every(succeeded) ? "Succeeded" : "Failed"
  return mains.every((record) => record.phase._tag !== "Waiting" || record.last !== undefined) ? "Running" : "Pending"
}

const list = (names: ReadonlyArray<string>) => `[${names.join(" ")}]`

/** The status that a kubelet would write, as a pure function. `now` (RFC 3339) is used only if a condition changes. */
export const podStatus = (pod: BoundPod, facts: PodFacts, previous: ReadonlyArray<Condition>, now: string) => {
  const record = (container: Container) => facts.records.get(container.name) ?? fresh
  const initContainers = pod.spec.initContainers ?? []
  const inits = initContainers.map(record)
  const mains = pod.spec.containers.map(record)
  const phase = phaseOf(inits, mains, facts)
  const finished = phase === "Succeeded" || phase === "Failed"
  const initialized = inits.every(succeeded)
  const unready = pod.spec.containers.filter((container) => !record(container).ready).map(({ name }) => name)
  const readiness =
    phase === "Succeeded"
      ? { status: "False", reason: "PodCompleted" }
      : phase === "Failed"
        ? { status: "False", reason: "PodFailed" }
        : unready.length === 0
          ? { status: "True" }
          : { status: "False", reason: "ContainersNotReady", message: `containers with unready status: ${list(unready)}` }
  const incomplete = initContainers.filter((container) => !succeeded(record(container))).map(({ name }) => name)
  const conditions: ReadonlyArray<Condition> = [
    { type: "PodScheduled", status: "True" },
    initialized
      ? { type: "Initialized", status: "True" }
      : { type: "Initialized", status: "False", reason: "ContainersNotInitialized", message: `containers with incomplete status: ${list(incomplete)}` },
    { type: "ContainersReady", ...readiness },
    { type: "Ready", ...readiness },
    ...(facts.failed?.disruption === true ? [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet", message: facts.failed.message }] : [])
  ]
  return {
    phase,
    ...(facts.failed === undefined ? {} : { reason: facts.failed.reason, message: facts.failed.message }),
    startTime: facts.startTime,
    podIP: facts.podIP,
    podIPs: [{ ip: facts.podIP }],
    hostIP: facts.hostIP,
    hostIPs: [{ ip: facts.hostIP }],
    conditions: conditions.map((condition) => {
      const before = previous.find(({ type }) => type === condition.type)
      return { ...condition, lastTransitionTime: before?.status === condition.status ? (before.lastTransitionTime ?? now) : now }
    }),
    ...(inits.length === 0 ? {} : { initContainerStatuses: initContainers.map((each) => containerStatus(pod.metadata.uid ?? "", each, record(each))) }),
    containerStatuses: pod.spec.containers.map((each) =>
      containerStatus(pod.metadata.uid ?? "", each, finished ? { ...record(each), ready: false } : record(each))
    )
  }
}
