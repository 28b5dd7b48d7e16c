import { readdirSync, readFileSync } from "node:fs"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // It ended meanwhile.
    return ""
  }
}

/** Ids of the processes whose command line or environment names a folder: those of a system that keeps its state there. A zombie has neither. */
export const processesOf = (folder: string): ReadonlyArray<number> =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid)
    .filter((pid) => read(`/proc/${pid}/cmdline`).includes(folder) || read(`/proc/${pid}/environ`).includes(folder))
