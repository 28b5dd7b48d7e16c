import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { namespace } from "./clusterObjects.ts"
import { groupsOfContainer } from "./controlGroups.ts"
import type { NodeClusterShape } from "./NodeCluster.ts"

const statusOf = (pod: Pod, container: string) => {
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container)
  if (status === undefined) throw new Error(`${pod.metadata.name} has no container ${container}`)
  return status
}

/** The ID of a running container, without the name of the runtime. */
const idOf = (pod: Pod, container: string): string => (statusOf(pod, container).containerID ?? "").replace(/^[a-z]+:\/\//u, "")

const processesOf = (pod: Pod, container: string): ReadonlyArray<number> => {
  const groups = groupsOfContainer(idOf(pod, container))
  const pids = new Set(groups.flatMap((group) => readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number)))
  if (pids.size === 0) throw new Error(`${pod.metadata.name} has no process in its container ${container}`)
  return [...pids]
}

/** Sends a signal to all processes of a container. */
export const signalContainer = (pod: Pod, container: string, signal: NodeJS.Signals): void => {
  for (const pid of processesOf(pod, container)) process.kill(pid, signal)
}

/**
 * What the kernel gives a container if the node has too little: its weight for processor time (1024 for a core with
 * version 1 of control groups), and how early its processes are killed for memory (1000: before all others).
 */
export const prioritiesOf = (pod: Pod, container: string) => ({
  cpuWeights: groupsOfContainer(idOf(pod, container))
    .flatMap((group) => ["cpu.shares", "cpu.weight"].map((file) => join(group, file)))
    .filter((path) => existsSync(path))
    .map((path) => Number(readFileSync(path, "utf8"))),
  killedFirst: processesOf(pod, container).map((pid) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8")))
})

/** Usage and limit of a control group's memory, with version 1 and 2. */
const memoryFiles = [
  ["memory.usage_in_bytes", "memory.limit_in_bytes"],
  ["memory.current", "memory.max"]
] as const

const step = 4 * 2 ** 20

/** Lowers the memory limit of a container to what its processes hold. The kernel first takes from it what can be read again from files. */
const lowerLimit = (id: string): void => {
  for (const group of groupsOfContainer(id)) {
    for (const [usage, limit] of memoryFiles.filter(([, file]) => existsSync(join(group, file)))) {
      try {
        for (let bytes = Number(readFileSync(join(group, usage), "utf8")); bytes > step; bytes -= step) writeFileSync(join(group, limit), String(bytes))
      } catch {
        // The processes hold more than this, or the kernel has killed them.
      }
    }
  }
}

/** Quota and period of a control group's processor time in microseconds, with version 1 and 2. */
const quotas = [
  ["cpu.cfs_quota_us", "10000"],
  ["cpu.max", "10000 100000"]
] as const

/** Leaves a container a tenth of a processor until the scope closes. */
export const slowDown = (pod: Pod, container: string) => {
  const files = groupsOfContainer(idOf(pod, container)).flatMap((group) => quotas.map(([file, slow]) => ({ path: join(group, file), slow })))
  const present = files.filter(({ path }) => existsSync(path))
  if (present.length === 0) throw new Error(`${pod.metadata.name} has no control group for the processor time of ${container}`)
  return Effect.acquireRelease(
    Effect.sync(() =>
      present.map(({ path, slow }) => {
        const before = readFileSync(path, "utf8")
        writeFileSync(path, slow)
        return { path, before }
      })
    ),
    // The container may have ended.
    (changed) =>
      Effect.sync(() => {
        for (const { before, path } of changed) if (existsSync(path)) writeFileSync(path, before)
      })
  )
}

/**
 * Makes a container exceed its memory limit, so that the kernel kills it: the limit goes down to what the container holds, and `use` makes it need more. Returns how the
 * container ended, as the kubelet reports it, after its restart. The next container of the pod has the limit of the pod's specification again.
 */
export const exceedMemory = Effect.fnUntraced(function* ({ kube }: Pick<NodeClusterShape, "kube">, pod: Pod, container: string, use: Effect.Effect<unknown>) {
  const id = idOf(pod, container)
  const { restartCount } = statusOf(pod, container)
  const now = Effect.map(kube.list(Pod, { namespace, fieldSelector: `metadata.name=${pod.metadata.name}` }), ([current = pod]) => statusOf(current, container))
  const round = Effect.gen(function* () {
    lowerLimit(id)
    // The request may fail, because the container may end meanwhile.
    yield* Effect.exit(Effect.timeout(use, "3 seconds"))
    return yield* now
  })
  const restarted = yield* eventually(`the kernel has killed ${container} of ${pod.metadata.name}`, round, (status) => status.restartCount > restartCount)
  return { reason: restarted.lastState?.terminated?.reason, restarts: restarted.restartCount - restartCount }
})
