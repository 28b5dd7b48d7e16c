import { spawn } from "node:child_process"

/**
 * Waits for a line. If its input ends without one, the parent was killed: the script then stops the server immediately
 * and removes the folders, unless another start has claimed them. Such a start sees all folders or none. Arguments: the
 * data, the process of the server, the lock, this process, the folders.
 */
const script = `
read -r line && exit
[ "$(head -n 1 "$1/postmaster.pid" 2>/dev/null)" = "$2" ] && kill -QUIT "$2"
tries=0
while [ -e "$1/postmaster.pid" ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
grep -q "\\"pid\\":$4," "$3" || exit
shift 4
for folder; do mv "$folder" "$folder.gone-$$"; done
for folder; do rm -rf "$folder.gone-$$"; done
`

export interface Orphan {
  readonly data: string
  readonly pid: number
  /** The file that names the owner of the folders. */
  readonly lock: string
  readonly folders: ReadonlyArray<string>
}

/**
 * Starts a process that stops a server with temporary data and removes the data if this process is killed. Call the
 * result to cancel it.
 */
export const endOrphan = ({ data, folders, lock, pid }: Orphan): (() => void) => {
  // A separate process group: Ctrl-C in the terminal would end it before the server.
  const guard = spawn("/bin/sh", ["-c", script, "sh", data, String(pid), lock, String(process.pid), ...folders], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"]
  })
  // Without it, a killed program leaves its server behind. Nothing else depends on it.
  guard.on("error", () => {})
  guard.stdin.on("error", () => {})
  guard.unref()
  return () => guard.stdin.end("ended\n")
}
