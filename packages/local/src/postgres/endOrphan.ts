import { spawn } from "node:child_process"

/**
 * Waits for a line; where its input ends without one, who held it was killed: then it ends the server at once, for nobody wants what it holds, and removes
 * the folders, unless another start has claimed them by then: one that comes meanwhile finds all of them or none. Arguments: the data, the server's process, the lock, our process, folders.
 */
const script = `
read -r told && exit
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
  /** Names who owns the folders. */
  readonly lock: string
  readonly folders: ReadonlyArray<string>
}

/** Has a process beside us end a server of throw-away data, and remove them, should we be killed. The result calls that off. */
export const endOrphan = ({ data, folders, lock, pid }: Orphan): (() => void) => {
  // A group of its own: the terminal's Ctrl-C would end it before the server.
  const guard = spawn("/bin/sh", ["-c", script, "sh", data, String(pid), lock, String(process.pid), ...folders], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"]
  })
  // Without it a killed program leaves its server behind, and no more.
  guard.on("error", () => {})
  guard.stdin.on("error", () => {})
  guard.unref()
  return () => guard.stdin.end("ended\n")
}
