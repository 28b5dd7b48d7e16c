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
 * When a process began, in words that only compare: with the id it tells a process from a later one that was given the same id.
 * Undefined where no such process runs; a zombie does not run.
 */
export const startOf = async (pid: number): Promise<string | undefined> => {
  if (process.platform !== "linux") return ps(pid, "lstart")
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined)
  if (stat === undefined) return undefined
  // The command's name, in parentheses, may itself hold spaces and parentheses: the fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const state = fields[0]
  return state === "Z" || state === "X" ? undefined : fields[19]
}

/** True where the process works in this folder, or (where the system does not tell) names it in its command line. */
export const worksIn = async (pid: number, folder: string): Promise<boolean> => {
  if (process.platform !== "linux") return (await ps(pid, "args"))?.includes(folder) === true
  const [cwd, wanted] = await Promise.all([readlink(`/proc/${pid}/cwd`).catch(() => undefined), realpath(folder).catch(() => undefined)])
  return cwd !== undefined && cwd === wanted
}

/** Sends a signal to a process, or to its group where `pid` is negative; false where it is gone. */
export const signal = (pid: number, name: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
