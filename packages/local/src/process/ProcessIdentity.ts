import { execFile } from "node:child_process"
import { readFile, readlink, realpath } from "node:fs/promises"
import { promisify } from "node:util"

const run = promisify(execFile)

const ps = (pid: number, column: string) =>
  run("ps", ["-o", `${column}=`, "-p", String(pid)]).then(
    ({ stdout }) => stdout.trim() || undefined,
    () => undefined
  )

/**
 * The start time of a process as text that can only be compared. Together with the process ID it distinguishes a
 * process from a later one with the same ID. Undefined if no such process runs. A zombie does not run.
 */
export const startOf = async (pid: number): Promise<string | undefined> => {
  if (process.platform !== "linux") return ps(pid, "lstart")
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined)
  if (stat === undefined) return undefined
  // The command name is in parentheses and may itself contain spaces and parentheses, so the fields are counted from
  // its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const state = fields[0]
  return state === "Z" || state === "X" ? undefined : fields[19]
}

/**
 * Whether the process has this working directory, or (if the system does not report it) names it in its command line.
 */
export const worksIn = async (pid: number, folder: string): Promise<boolean> => {
  if (process.platform !== "linux") return (await ps(pid, "args"))?.includes(folder) === true
  const [cwd, wanted] = await Promise.all([readlink(`/proc/${pid}/cwd`).catch(() => undefined), realpath(folder).catch(() => undefined)])
  return cwd !== undefined && cwd === wanted
}

/** Sends a signal to a process, or to its group if `pid` is negative; false if it does not exist. */
export const signal = (pid: number, name: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
