import { spawn } from "node:child_process"
import { chmod, mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/**
 * Vitest's global set-up: one folder for whatever a run writes, and a process that waits for the run's end, however it comes, kills what still runs on the folder and removes
 * it. The programs of a control plane know nothing of who started them and would stay.
 */
export default async function () {
  const folder = await mkdtemp(join(tmpdir(), "seatrial-run-"))
  await chmod(folder, 0o755)
  // A separate session: Ctrl-C ends the run, not this process.
  const sweeper = spawn(process.execPath, [join(import.meta.dirname, "sweepAfter.ts"), folder], { detached: true, stdio: ["pipe", "inherit", "inherit"] })
  sweeper.unref()
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  return async () => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    const swept = new Promise((resolve) => sweeper.once("exit", resolve))
    sweeper.stdin.end()
    await swept
  }
}
