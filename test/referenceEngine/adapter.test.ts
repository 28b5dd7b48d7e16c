import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { writeTinyChat } from "@seatrial/reference-engine/testing"
import { Effect, Schedule } from "effect"
import { reference } from "../../packages/engines/src/reference/adapter.ts"
import { saysWhatToDo } from "../../packages/engines/test/saysWhatToDo.ts"
import { tinyRopeConfig } from "../models/modelConfigs.ts"
import { freePort } from "../process/freePort.ts"
import { startProcess } from "../process/startProcess.ts"

const main = join(import.meta.dirname, "../../packages/reference-engine/src/main.ts")

const model = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = mkdtempSync(join(tmpdir(), "seatrial-adapter-"))
    writeTinyChat(directory, { seed: 1 })
    return directory
  }),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

/** Starts the engine with the adapter's arguments on a chosen port. */
const start = Effect.fnUntraced(function* (directory: string, port: number, gpuMemory = 2 ** 28) {
  const { args } = reference.container({
    settings: { runtime: "reference", host_class: "small", max_context: 2_048, kv_cache_dtype: "auto", yarn: { factor: 2 }, engine_flags: { max_num_seqs: 4 } },
    config: tinyRopeConfig,
    servedNames: ["org/tiny", "tiny"],
    modelPath: directory,
    hostClass: { gpu_pool: "sim", gpu_count: 1, gpu_memory_bytes: gpuMemory },
    bootSeconds: 60,
    cachePath: "/tmp"
  })
  const own = args.map((argument) => argument.replace("$(POD_IP)", "127.0.0.1").replace(/^--port=.*/, `--port=${port}`))
  return yield* startProcess([process.execPath, main, ...own], { env: process.env, graceSeconds: 20 })
})

const get = (port: number, path: string) =>
  Effect.tryPromise(async () => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return { ok: response.ok, text: await response.text() }
  })

const complete = (port: number, model: string) =>
  Effect.tryPromise(async () => {
    const body = JSON.stringify({ model, prompt: [1, 2, 3], max_tokens: 1 })
    const response = await fetch(`http://127.0.0.1:${port}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" }, body })
    return { status: response.status, text: await response.text() }
  })

describe("the adapter of the reference engine", () => {
  it.live("starts the engine with its arguments, and the reported figures are complete and within the estimate of the fit", () =>
    Effect.gen(function* () {
      const [directory, port] = [yield* model, yield* freePort]
      const engine = yield* start(directory, port)
      yield* get(port, "/health").pipe(Effect.retry(Schedule.spaced("50 millis").pipe(Schedule.upTo({ times: 400 }))))
      // A published model keeps its engine and is called by another name.
      for (const name of ["org/tiny", "tiny", "other"]) {
        const answered = yield* complete(port, name)
        assert.deepStrictEqual([answered.status, answered.text.includes(`"model":"${name}"`)], name === "other" ? [404, false] : [200, true], answered.text)
      }
      const metrics = yield* get(port, "/metrics")
      const measured = reference.measured({ metrics: metrics.text, log: engine.output() })
      for (const [name, value] of Object.entries(measured)) assert.isNotNull(value, name)
      const card = { gpu_pool: "Simulated-GPU", gpu_count: 1, gpu_memory_bytes: 2 ** 28 }
      const overhead = reference.memory.overhead({ config: tinyRopeConfig, flags: {}, card, maxContext: 1_024 }).activation
      assert.isAtLeast(measured.overhead_bytes ?? 0, overhead.low)
      assert.isAtMost(measured.overhead_bytes ?? 0, overhead.high)
      const perToken = (measured.kv_cache_bytes ?? 0) / (measured.kv_cache_tokens ?? 1)
      assert.closeTo(perToken, 2 * 4 * 2 * 32 * 4, 2 * 4 * 2 * 32 * 4 * 0.02)
    }).pipe(Effect.scoped)
  )

  const failures: ReadonlyArray<readonly [promise: string, spoil: (directory: string) => void, gpuMemory: number, code: string]> = [
    ["a cut weights file is named", (directory) => truncateSync(join(directory, "model.safetensors"), 400_000), 2 ** 28, "weights_incomplete"],
    ["missing weights are named", (directory) => rmSync(join(directory, "model.safetensors")), 2 ** 28, "weights_missing"],
    ["a broken tokenizer is named", (directory) => writeFileSync(join(directory, "tokenizer.json"), "{}"), 2 ** 28, "tokenizer_unreadable"],
    ["a GPU that is too small for the context is named", () => {}, 4 * 2 ** 20, "context_does_not_fit"]
  ]
  for (const [promise, spoil, gpuMemory, code] of failures) {
    it.live(`reports ${promise} if the engine does not start`, () =>
      Effect.gen(function* () {
        const [directory, port] = [yield* model, yield* freePort]
        spoil(directory)
        const engine = yield* start(directory, port, gpuMemory)
        assert.strictEqual(yield* engine.exited, 1)
        const failure = reference.bootFailure(engine.output())
        assert.strictEqual(failure.code, code, engine.output())
        assert.match(failure.text, saysWhatToDo)
      }).pipe(Effect.scoped)
    )
  }

  it("reports missing weights; for unknown causes the text refers to the log", () => {
    const lacking = "ValueError: Following weights were not initialized from checkpoint: {'model.layers.3.mlp.up_proj.weight'}"
    assert.strictEqual(reference.bootFailure(lacking).code, "weights_incomplete")
    const { code, text } = reference.bootFailure("something else")
    assert.strictEqual(code, "engine_start_failed")
    assert.include(text, "in the log of Seatrial's operator")
    assert.match(text, saysWhatToDo)
    assert.match(reference.bootFailure("Model architectures ['A'] are not supported for now.").text, saysWhatToDo)
  })

  it.each([
    [
      "Unsupported config.json: rope_type 'odd'; only default, linear, yarn and llama3",
      "Unsupported config.json: rope_type 'odd'; only default, linear, yarn and llama3"
    ],
    ["Invalid repository ID or local directory specified: '/home/some one/models/x' has no config.json", "local directory specified: 'x' has no config.json"],
    ["While loading /var/lib/seatrial/adapter, expected target modules", "While loading adapter, expected target modules"],
    ["Tensor a/b.weight has shape [1, 2], but config.json asks for [2, 2]", "Tensor a/b.weight has shape [1, 2], but config.json asks for [2, 2]"],
    [
      "Cannot listen on 10.1.2.3:8000: listen EADDRINUSE: address already in use 10.1.2.3:8000",
      "Cannot listen on …: listen EADDRINUSE: address already in use …"
    ]
  ])("quotes the last error without node folders and addresses: %s", (output, expected) => {
    const log = `(EngineCore pid=7) INFO 11-21 07:42:59 [Boot.ts] Loading\n(EngineCore pid=7) ERROR 11-21 07:42:59 [main.ts] ${output}\n`
    assert.isTrue(reference.bootFailure(log).text.endsWith(`${expected}.`), reference.bootFailure(log).text)
    assert.notMatch(reference.bootFailure(log).text, /pid=|home|some one|var\/lib|10\.1/)
  })

  it("names an unknown flag, and a value out of range", () => {
    assert.isNull(reference.flagIssue({ max_num_seqs: 8, seed: 1, gpu_memory_utilization: 0.8 }))
    assert.strictEqual(reference.flagIssue({ trust_remote_code: true })?.flag, "trust_remote_code")
    assert.strictEqual(reference.flagIssue({ max_num_seqs: "8" })?.flag, "max_num_seqs")
  })
})
