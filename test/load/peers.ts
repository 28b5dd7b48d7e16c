import { execFile } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { installOnce } from "./installOnce.ts"
import { BenchError, type Program, startProgram } from "./Program.ts"

/** Folder of the other gateways. They are not part of the project. */
const folder = join(import.meta.dirname, "../../.seatrial/peers")

export interface Peer {
  readonly program: Program
  /** The API key of its callers. */
  readonly key: string
  readonly model: string
  readonly headers: Readonly<Record<string, string>>
}

const run = (command: string, words: ReadonlyArray<string>) =>
  Effect.callback<void, BenchError>((resume) => {
    execFile(command, words, { timeout: 600_000, maxBuffer: 2 ** 24 }, (error, _, told) =>
      resume(error === null ? Effect.void : Effect.fail(new BenchError({ message: `${command} ${words.join(" ")}: ${error.message} ${told.slice(-500)}` })))
    )
  })

const portkeyVersion = "1.15.2"
const liteLlmVersion = "1.106.0"

/** Portkey's gateway, which checks no key and writes no records. */
export const startPortkey = Effect.fnUntraced(function* (engine: Program, core: number): Effect.fn.Return<Peer, BenchError, Scope.Scope> {
  const at = yield* installOnce(join(folder, `portkey-${portkeyVersion}`), (to) =>
    run("npm", ["install", "--prefix", to, "--no-audit", "--no-fund", `@portkey-ai/gateway@${portkeyVersion}`])
  )
  const program = yield* startProgram({
    name: `Portkey's gateway ${portkeyVersion}`,
    file: (port) => [process.execPath, join(at, "node_modules/@portkey-ai/gateway/build/start-server.js"), `--port=${port}`, "--headless"],
    readyPath: "/",
    environment: () => ({ NODE_ENV: "production" }),
    core
  })
  return {
    program,
    key: "none",
    model: "bench",
    headers: { "x-portkey-provider": "openai", "x-portkey-custom-host": `http://${engine.host}:${engine.port}/v1` }
  }
})

/** LiteLLM's proxy with its master key and without a database, so that it writes no records. */
export const startLiteLlm = Effect.fnUntraced(function* (engine: Program, core: number): Effect.fn.Return<Peer, BenchError, Scope.Scope> {
  const at = yield* installOnce(join(folder, `litellm-${liteLlmVersion}`), (to) =>
    Effect.andThen(
      run("python3", ["-m", "venv", to]),
      run(join(to, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", `litellm[proxy]==${liteLlmVersion}`])
    )
  )
  const config = join(at, "bench.yaml")
  const model = { model_name: "bench", litellm_params: { model: "openai/bench", api_base: `http://${engine.host}:${engine.port}/v1`, api_key: "none" } }
  // JSON is valid YAML.
  yield* Effect.promise(() => writeFile(config, JSON.stringify({ model_list: [model] })))
  const key = `sk-${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`
  const program = yield* startProgram({
    name: `LiteLLM's proxy ${liteLlmVersion}`,
    file: (port) => [join(at, "bin/litellm"), "--config", config, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"],
    readyPath: "/health/liveliness",
    environment: () => ({ HOME: at, LITELLM_MASTER_KEY: key, LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_TELEMETRY: "False" }),
    core,
    startSeconds: 90
  })
  return { program, key, model: "bench", headers: {} }
})
