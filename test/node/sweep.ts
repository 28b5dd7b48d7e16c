import { readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { groupsOfNode } from "./controlGroups.ts"
import { bridge, desk, mark, nodes, serviceNetwork, state } from "./places.ts"
import { tryNow } from "./runTool.ts"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // The process or the group is gone.
    return ""
  }
}

const isMarked = (pid: number) => read(`/proc/${pid}/environ`).split("\0").includes(`${mark.name}=${mark.value}`)

/** Programs that the suite started, and the processes of containers. */
const findProcesses = (): ReadonlyArray<number> => {
  const programs = readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid && isMarked(pid))
  const contained = nodes.flatMap(groupsOfNode).flatMap((group) => read(join(group, "cgroup.procs")).split("\n").filter(Boolean).map(Number))
  return [...new Set([...programs, ...contained])]
}

const killProcesses = async (): Promise<void> => {
  const until = performance.now() + 60_000
  for (let pids = findProcesses(); pids.length > 0; pids = findProcesses()) {
    if (performance.now() > until) throw new Error(`Processes of an earlier run do not end: ${pids.join(" ")}`)
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It has ended.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** The mounts of a node are in its own mount namespace and go with it. Only the files of namespaces are mounted in this one. */
const unmount = (): void => {
  const mounted = read("/proc/self/mountinfo")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${state}/`))
  for (const path of mounted.toReversed()) tryNow("umount", "--lazy", path)
}

const removeNetwork = (): void => {
  for (const { namespace, number, pods } of nodes) {
    tryNow("ip", "link", "del", `seatrial-v${number}`)
    tryNow("ip", "netns", "del", namespace)
    tryNow("ip", "route", "del", pods)
  }
  tryNow("ip", "link", "del", desk.link)
  tryNow("ip", "netns", "del", desk.namespace)
  tryNow("ip", "route", "del", serviceNetwork)
  tryNow("ip", "link", "del", bridge)
}

const removeGroups = (): void => {
  for (const group of nodes.flatMap(groupsOfNode)) {
    try {
      rmdirSync(group)
    } catch {
      // Groups are few and empty. The kernel may still hold one for a moment; the next run uses it again.
    }
  }
}

/** Removes everything that a run made: processes, mounts, network, control groups and files. Does nothing if there is nothing. */
export const sweep = async (): Promise<void> => {
  await killProcesses()
  unmount()
  removeNetwork()
  removeGroups()
  rmSync(state, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
}
