import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { engineFor } from "@seatrial/engines"
import { afterEach, describe, expect, it } from "vitest"
import { tinyRopeConfig } from "../../../../test/models/modelConfigs.ts"
import { writeTrained } from "../../sample/trained.ts"
import { Safetensors } from "../../src/Safetensors.ts"
import { toFloat32 } from "../../src/Tensor.ts"
import { writeTinyChat } from "../sample/index.ts"
import { emptyDirectory } from "../smallModel.ts"

const directory = emptyDirectory()
writeTinyChat(directory, { seed: 7 })
const started: Array<ChildProcess> = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL")
})

const engineOf = (runtime: "vllm" | "sglang") => {
  const engine = engineFor(runtime)
  if (engine === undefined) throw new Error(`there is no ${runtime}`)
  return engine
}

/** Runs the adapter's command on a free port, with the stand-in instead of the engine. */
const run = (runtime: "vllm" | "sglang", more: ReadonlyArray<string> = [], { context = 2_048, memory = 2 ** 30, model = directory } = {}) => {
  const { args, command, env } = engineOf(runtime).container({
    settings: {
      runtime,
      host_class: "sim",
      max_context: context,
      kv_cache_dtype: "auto",
      yarn: { factor: 2 },
      engine_flags: { [runtime === "vllm" ? "max_num_seqs" : "max_running_requests"]: 4 }
    },
    config: tinyRopeConfig,
    servedNames: ["org/tiny", "tiny"],
    modelPath: model,
    hostClass: { gpu_pool: "Sim", gpu_count: 1, gpu_memory_bytes: memory },
    bootSeconds: 60,
    cachePath: "/tmp"
  })
  const [program = "", ...first] = command
  const words = [...first, ...args, ...more].map((word) => word.replace("$(POD_IP)", "127.0.0.1").replace(/^--port=.*/, "--port=0"))
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../bin", runtime, program), ...words], {
    env: { ...process.env, ...env, SEATRIAL_SIMULATED_GPU_BYTES: String(memory) }
  })
  started.push(child)
  const exited: Promise<number | null> = once(child, "exit").then(() => child.exitCode)
  const output = { out: "", errors: "" }
  child.stdout.on("data", (bytes: Buffer) => (output.out += bytes.toString()))
  child.stderr.on("data", (bytes: Buffer) => (output.errors += bytes.toString()))
  /** The address, as soon as the log reports it. */
  const serves = async (): Promise<string> => {
    for (;;) {
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(output.out + output.errors)?.[0]
      if (address !== undefined) return address
      if (child.exitCode !== null) throw new Error(`${output.out}${output.errors}`)
      // Waits for events instead of polling, because the engine starts on the same processors.
      await Promise.race([once(child.stdout, "data"), once(child.stderr, "data"), exited])
    }
  }
  return { child, exited, output, serves }
}

describe("the reference engine in place of another engine", () => {
  it.each(["vllm", "sglang"] as const)("%s: refuses an argument that the real engine does not have, and exits with 2", async (runtime) => {
    const { exited, output } = run(runtime, ["--no-such-argument=1"])
    expect(await exited).toBe(2)
    expect(output.errors).toContain("error: unrecognized arguments: --no-such-argument=1")
    expect(engineOf(runtime).bootFailure(output.out + output.errors).code).toBe("arguments_refused")
  })

  it.each(["vllm", "sglang"] as const)("%s: reports a GPU without room for the cache in a form that the adapter recognizes", async (runtime) => {
    const { exited, output } = run(runtime, [], { memory: 2 * 2 ** 20 })
    expect(await exited).toBe(1)
    expect(["out_of_memory", "context_does_not_fit"]).toContain(engineOf(runtime).bootFailure(output.out + output.errors).code)
  })

  it("vllm: starts with the adapter's arguments, reports a simulated version, and all its figures can be read", async () => {
    const { output, serves } = run("vllm")
    const address = await serves()
    const get = async (path: string) => (await fetch(`${address}${path}`)).text()
    expect(JSON.parse(await get("/version"))).toEqual({ version: "simulated-vllm-0.33.0" })
    expect(JSON.parse(await get("/v1/models"))).toMatchObject({ data: [{ id: "org/tiny", max_model_len: 2_048 }, { id: "tiny" }] })
    // It does not report loaded values.
    expect((await fetch(`${address}/get_weights_by_name`)).status).toBe(404)
    // It accepts only the names that it was started with, and answers with the first one.
    const post = async (path: string, asked: object) => {
      const response = await fetch(`${address}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(asked) })
      return { status: response.status, told: JSON.parse(await response.text()) }
    }
    const messages = [{ role: "user", content: "x" }]
    for (const model of ["org/tiny", "tiny"]) {
      expect(await post("/v1/messages", { model, messages, max_tokens: 1 })).toMatchObject({ status: 200, told: { model: "org/tiny" } })
      expect(await post("/v1/messages/count_tokens", { model, messages })).toMatchObject({ status: 200, told: { input_tokens: expect.any(Number) } })
    }
    for (const model of ["org/tin", "org/tiny,tiny", "org"]) {
      expect((await post("/v1/messages", { model, messages, max_tokens: 1 })).status, model).toBe(404)
      expect((await post("/v1/messages/count_tokens", { model, messages })).status, model).toBe(404)
    }
    // An engine without a parser of calls refuses functions.
    const tools = [{ type: "function", function: { name: "f" } }]
    const body = JSON.stringify({ messages: [{ role: "user", content: "x" }], tools, max_tokens: 1 })
    expect((await fetch(`${address}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body })).status).toBe(400)
    const measured = engineOf("vllm").measured({ metrics: await get("/metrics"), log: output.out })
    // It captures no graphs.
    for (const [figure, value] of Object.entries(measured)) if (figure !== "graph_seconds") expect(value, figure).not.toBeNull()
  })

  it.each([
    ["vllm", "qwen3_xml"],
    ["sglang", "qwen3_coder"]
  ] as const)("%s: with a parser for another format the prompt contains the tools, and calls stay in the text", async (runtime, parser) => {
    const trained = emptyDirectory()
    writeTrained(trained, "tiny-chat")
    const tools = [{ type: "function", function: { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } } }]
    const asked = { model: "org/tiny", messages: [{ role: "user", content: "What is the weather in Paris?" }], tools, temperature: 0, max_tokens: 60 }
    const chosen = (own: string) => (runtime === "vllm" ? ["--enable-auto-tool-choice", `--tool-call-parser=${own}`] : [`--tool-call-parser=${own}`])
    const answer = async (address: string, choice: unknown) => {
      const body = JSON.stringify({ ...asked, tool_choice: choice })
      return (await fetch(`${address}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body })).json()
    }
    const called = { message: { tool_calls: [{ function: { name: "get_weather" } }] }, finish_reason: "tool_calls" }
    const read = await answer(await run(runtime, chosen("hermes"), { model: trained }).serves(), "auto")
    expect(read).toMatchObject({ choices: [called] })
    const other = await run(runtime, chosen(parser), { model: trained }).serves()
    const unread = await answer(other, "auto")
    expect(unread).toMatchObject({ choices: [{ message: { content: expect.stringContaining("get_weather") }, finish_reason: "stop" }] })
    expect(unread).not.toMatchObject({ choices: [{ message: { tool_calls: [expect.anything()] } }] })
    // The template renders the prompt, whatever parser reads the answer.
    expect(unread).toMatchObject({ usage: { prompt_tokens: Object(read).usage.prompt_tokens } })
    // A required call is enforced by a grammar and needs no parser.
    expect(await answer(other, "required")).toMatchObject({ choices: [{ message: { tool_calls: [expect.anything()] } }] })
  })

  it("sglang: is ready after its warm-up, accepts any model name, answers in SGLang's format, and all its figures can be read", async () => {
    // Less than YaRN allows, because filling it would take long.
    const context = 1_104
    const { output, serves } = run("sglang", [], { context })
    const address = await serves()
    expect(output.out).toBe("")
    expect((await fetch(`${address}/ready`)).status).toBe(200)
    expect((await fetch(`${address}/version`)).status).toBe(404)
    const ask = (body: object) =>
      fetch(`${address}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
    expect(await (await ask({ model: "another", prompt: "x", max_tokens: 1 })).json()).toMatchObject({ model: "another" })
    // Longer than the model's own context, which YaRN doubles.
    expect(await (await ask({ prompt: Array.from({ length: 1_030 }, () => 7), max_tokens: 2, ignore_eos: true })).json()).toMatchObject({
      usage: { prompt_tokens: 1_030, completion_tokens: 2 }
    })
    // The loaded values of a matrix by rows, requested as the trial does.
    const { loadedTensors } = engineOf("sglang").offers({ runtime: "sglang", host_class: "sim", max_context: context, kv_cache_dtype: "auto" }, true)
    const tell = async (path: string, body: object) =>
      JSON.parse(
        await (await fetch(`${address}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).text()
      )
    const values = loadedTensors?.values ?? ""
    const files = new Safetensors(directory)
    const rows = toFloat32(files.read("model.embed_tokens.weight", [512, 128]))
    expect(await tell(values, { name: "model.embed_tokens.weight", truncate_size: 2 })).toEqual([[...rows.subarray(0, 128)], [...rows.subarray(128, 256)]])
    expect(await tell(values, { name: "model.norm.weight" })).toEqual([...toFloat32(files.read("model.norm.weight", [128])).subarray(0, 100)])
    expect(await tell(values, { name: "model.none" })).toEqual({ error: { message: "Get parameter by name failed" } })
    expect(await tell(loadedTensors?.checksum ?? "", { action: "checksum" })).toMatchObject({
      success: true,
      per_engine_checksum: expect.stringMatching(/^[0-9a-f]{64}$/)
    })
    expect(await tell(loadedTensors?.checksum ?? "", { action: "reset_tensors" })).toMatchObject({ success: false })
    // Other figures in SGLang's format.
    expect(JSON.parse(await (await fetch(`${address}/model_info`)).text())).toMatchObject({ is_generation: true, weight_version: "default" })
    const again = { prompt: Array.from({ length: 40 }, (_, at) => 300 + at), max_tokens: 1, ignore_eos: true, return_prompt_token_ids: true }
    expect(await (await ask(again)).json()).toMatchObject({
      choices: [{ prompt_token_ids: again.prompt }],
      usage: { prompt_tokens_details: { cached_tokens: 0 } }
    })
    expect(await (await ask(again)).json()).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: 32 } } })
    expect(await (await ask({ ...again, cache_salt: "other" })).json()).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: 0 } } })
    // A request that does not fit is refused and not cut.
    const long = { prompt: Array.from({ length: context - 8 }, () => 7), max_tokens: 9 }
    expect(await (await ask(long)).json()).toMatchObject({
      code: 400,
      message: expect.stringMatching(
        /context length of 1104 tokens\. You requested a total of 1105 tokens: 1096 tokens from the input messages and 9 tokens for/
      )
    })
    expect(await (await ask({ ...long, prompt: Array.from({ length: context }, () => 7) })).json()).toMatchObject({
      code: 400,
      message: expect.stringMatching(/^The input \(1104 tokens\) is longer/)
    })
    // It reserves the end of its context: no prompt reaches the last seven tokens, no answer the last two.
    const last = { prompt: long.prompt.concat(7), max_tokens: 7, ignore_eos: true }
    expect(await (await ask(last)).json()).toMatchObject({
      choices: [{ finish_reason: "length" }],
      usage: { prompt_tokens: context - 7, completion_tokens: 5 }
    })
    expect(await (await ask({ ...last, prompt: last.prompt.concat(7), max_tokens: 1 })).json()).toMatchObject({
      code: 400,
      message: expect.stringMatching(/^Input length \(1098 tokens\) exceeds the maximum allowed length \(1098 tokens\)/)
    })
    expect(await (await ask({ prompt: "x", max_tokens: -1 })).json()).toMatchObject({ object: "error", code: 400, message: expect.any(String) })
    const metrics = await (await fetch(`${address}/metrics`)).text()
    // Generated tokens are counted immediately, requests when they end.
    expect(metrics).toMatch(/^sglang:realtime_tokens_total\{[^}]*mode="decode"\} [1-9]/m)
    expect(metrics).toMatch(/^sglang:generation_tokens_total\{[^}]*\} [1-9]/m)
    const untold = new Set(["activation_bytes", "graph_bytes", "graph_seconds", "boot_seconds"])
    for (const [figure, value] of Object.entries(engineOf("sglang").measured({ metrics, log: output.errors }))) {
      if (!untold.has(figure)) expect(value, figure).not.toBeNull()
    }
  })
})
