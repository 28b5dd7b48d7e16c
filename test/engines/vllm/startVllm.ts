import { type ChildProcessByStdio, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Readable } from "node:stream"
import type { RepositoryFacts } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { type TrainedName, trainedFiles, writeTrained } from "@seatrial/reference-engine/sample"
import { Effect, Exit, Schedule } from "effect"
import { factsOf } from "../../mutants/sampleFacts.ts"
import type { Files, Served } from "../../mutants/serveSample.ts"
import { freePort } from "../../process/freePort.ts"
import { installVllm, version } from "./installVllm.ts"

/** As large as the largest GPU. The cache size of the engine is set by its number of blocks. */
const card = { gpu_pool: "H100-80GB", gpu_count: 1, gpu_memory_bytes: 80 * 2 ** 30 }
const maxContext = 1_024

/** The adapter, and the settings of a deployment on it of the model with these facts. */
export const deployedOf = (facts: RepositoryFacts) => {
  const engine = engineFor("vllm")
  if (engine === undefined) throw new Error("there is no adapter for vLLM")
  const engine_flags = engine.chosenFlags?.({ config: facts.config, flags: {}, card, maxContext }, facts) ?? {}
  return { engine, facts, settings: { runtime: "vllm", host_class: "processor", max_context: maxContext, kv_cache_dtype: "auto", engine_flags } as const }
}

/** The same for a sample model. */
export const deployed = (name: TrainedName) => deployedOf(factsOf(name, trainedFiles(name)))

/**
 * The modules that the sample adapters change. By default vLLM also prepares the output head for adapters. Its code for
 * CPUs then ends if one step has prompt log-probabilities of several requests (vLLM's issue 16668).
 */
const adapterModules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
/** Additional arguments for a CPU: no compilation, and a cache for three requests of the maximum length. */
const ofProcessors = ["--enforce-eager", "--block-size=32", "--num-gpu-blocks-override=96"]
// With a thread for each processor, a step waits until the slowest thread had its turn: on a busy machine that took five times as long.
const ofProcessorsToo = {
  OMP_NUM_THREADS: "1",
  VLLM_CPU_KVCACHE_SPACE: "1",
  VLLM_CPU_OMP_THREADS_BIND: "nobind",
  VLLM_NO_USAGE_STATS: "1",
  HF_HUB_OFFLINE: "1"
}

interface Starting {
  /** The files to serve. */
  readonly files: Files
  /** An adapter that it also serves, as `adapter`. */
  readonly adapter?: TrainedName
  readonly servedName?: string
  /** Whether it can load other weights later, see `loadWeights`. */
  readonly reloads?: boolean
}

/** Runs vLLM with the arguments of the adapter until the scope closes. */
export const serveVllm = Effect.fnUntraced(function* (
  { engine, facts, settings }: ReturnType<typeof deployedOf>,
  { adapter, files, reloads = false, servedName = "m" }: Starting
) {
  const program = installVllm()
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-vllm-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  const [modelPath, adapterPath] = [join(folder, "model"), join(folder, "adapter")]
  for (const folder of [modelPath, adapterPath]) mkdirSync(folder)
  for (const [file, bytes] of files) writeFileSync(join(modelPath, file), bytes)
  if (adapter !== undefined) writeTrained(adapterPath, adapter)
  const started = engine.container({
    settings,
    config: facts.config,
    servedNames: [servedName],
    modelPath,
    hostClass: card,
    bootSeconds: 900,
    cachePath: join(folder, "cache")
  })
  const port = yield* freePort
  const words = [...started.command.slice(1), ...started.args].map((word) => word.replace("$(POD_IP)", "127.0.0.1").replace("--port=8000", `--port=${port}`))
  const ofAdapter =
    adapter === undefined
      ? []
      : ["--enable-lora", "--max-loras=1", "--max-lora-rank=8", `--lora-modules=adapter=${adapterPath}`, "--lora-target-modules", ...adapterModules]
  let output = ""
  const keep = (bytes: Buffer) => {
    output = `${output}${bytes.toString("utf8")}`.slice(-1_000_000)
  }
  const child = yield* Effect.acquireRelease(
    Effect.sync((): ChildProcessByStdio<null, Readable, Readable> => {
      const { HOME = "/tmp", PATH = "" } = process.env
      const env = { HOME, PATH, ...started.env, ...ofProcessorsToo, ...(reloads ? { VLLM_SERVER_DEV_MODE: "1" } : {}) }
      return spawn(program, [...words, ...ofAdapter, ...ofProcessors], { env, detached: true, stdio: ["ignore", "pipe", "pipe"] })
    }),
    // Its workers are processes of the same group.
    ({ pid }) => Effect.sync(() => void (pid !== undefined && process.kill(-pid, "SIGKILL"))).pipe(Effect.ignoreCause)
  )
  yield* Effect.addFinalizer((exit) => (Exit.isFailure(exit) ? Effect.logInfo(`The last output of vLLM:\n${output.slice(-8_000)}`) : Effect.void))
  child.stdout.on("data", keep)
  child.stderr.on("data", keep)
  const url = `http://127.0.0.1:${port}`
  const answers = Effect.tryPromise(() => fetch(`${url}${started.probes.startup.path}`)).pipe(Effect.filterOrFail(({ ok }) => ok))
  const ended = Effect.callback<never, Error>((resume) => {
    child.once("exit", () => resume(Effect.fail(new Error(`vLLM ended before it was ready: ${output.slice(-4_000)}`))))
  })
  yield* Effect.raceFirst(Effect.retry(answers, Schedule.spaced("1 second")), ended)
  const served: Served = { url, version, files }
  return { ...served, log: () => output }
})

/** Loads the weights of a folder into a running vLLM that `reloads`. A start takes minutes on a busy machine, this a second. */
export const loadWeights = ({ url }: Served, folder: string) =>
  Effect.tryPromise(async () => {
    const post = async (path: string, body: object) => {
      const answer = await fetch(`${url}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
      if (!answer.ok) throw new Error(`POST ${path} answered ${answer.status}: ${await answer.text()}`)
    }
    await post("/collective_rpc", { method: "reload_weights", kwargs: { weights_path: folder } })
    await post("/reset_prefix_cache", {})
    // The engine may just have closed the kept connection that a request uses.
  }).pipe(Effect.retry({ times: 2 }), Effect.orDie)

/** The same with a sample model, by default with its own files. */
export const startVllm = (name: TrainedName, starting: Partial<Starting> = {}) => serveVllm(deployed(name), { files: trainedFiles(name), ...starting })
