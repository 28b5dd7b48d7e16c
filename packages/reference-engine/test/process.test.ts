import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { afterEach, describe, expect, it } from "vitest"
import { EngineClient, greedy } from "./engineClient.ts"
import { writeTinyChat } from "./sample/index.ts"
import { emptyDirectory } from "./smallModel.ts"

const directory = emptyDirectory()
writeTinyChat(directory, { seed: 7 })
const started: Array<ChildProcess> = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL")
})

const run = (words: ReadonlyArray<string>, environment: NodeJS.ProcessEnv = {}) => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../src/main.ts"), ...words], { env: { ...process.env, ...environment } })
  started.push(child)
  const exited: Promise<number | null> = once(child, "exit").then(() => child.exitCode)
  let out = ""
  let errors = ""
  child.stderr.on("data", (bytes: Buffer) => {
    errors += bytes.toString()
  })
  const ready = new Promise<EngineClient>((resolve, reject) => {
    child.stdout.on("data", (bytes: Buffer) => {
      out += bytes.toString()
      const port = /http:\/\/127\.0\.0\.1:(\d+)\n[\s\S]*Application startup complete\.\n/.exec(out)?.[1]
      if (port !== undefined) resolve(new EngineClient(`http://127.0.0.1:${port}`))
    })
    child.once("exit", () => reject(new Error(`${out}${errors}`)))
  })
  ready.catch(() => {})
  return { child, ready, exited, output: () => out, errors: () => errors }
}
const words = [`--model=${directory}`, "--served-model-name=tiny", "--host=127.0.0.1", "--port=0", "--gpu-memory-bytes=67108864"]

describe("the program", () => {
  it("answers over its socket, reports version and model, and uses the caller's request ID", async () => {
    const { child, exited, ready } = run(words)
    const client = await ready
    const get = async (path: string): Promise<unknown> => (await fetch(`${client.address}${path}`)).json()
    expect((await fetch(`${client.address}/health`)).status).toBe(200)
    expect(await get("/version")).toEqual({ version: "reference-0.1.0" })
    expect(await get("/v1/models")).toMatchObject({ data: [{ id: "tiny", root: directory, max_model_len: 1024 }] })
    const body = { model: "tiny", messages: [{ role: "user", content: "Hello" }], ...greedy, max_tokens: 5 }
    const response = await client.send("/v1/chat/completions", body, { headers: { "content-type": "application/json", "x-request-id": "req_abc" } })
    expect(await response.json()).toMatchObject({ id: "chatcmpl-req_abc", model: "tiny" })
    child.kill("SIGTERM")
    expect(await exited).toBe(0)
  })

  it("aborts streams on SIGTERM and exits with 0", async () => {
    const { child, exited, ready } = run(words)
    const client = await ready
    const response = await client.send("/v1/completions", { prompt: "x", max_tokens: 1000, ignore_eos: true, stream: true })
    child.kill("SIGTERM")
    const text = await response.text()
    expect(text).toContain('"finish_reason":"abort"')
    expect(text.endsWith(dataFrame(streamEnd))).toBe(true)
    expect(await exited).toBe(0)
    await expect(fetch(`${client.address}/health`)).rejects.toThrow()
  })

  it("exits when its standard input closes, if this was enabled", async () => {
    const { child, exited, ready } = run(words, { SEATRIAL_PARENT_PIPE: "1" })
    await ready
    child.stdin.end()
    expect(await exited).toBe(0)
  })

  it("exits with 1 and the reason in the last line if it cannot start", async () => {
    const { exited, output } = run([...words.filter((word) => !word.startsWith("--model=")), "--model=/nonexistent"])
    expect(await exited).toBe(1)
    expect(output().trimEnd().split("\n").at(-1)).toContain("Invalid repository ID or local directory specified: '/nonexistent'")
  })

  it("exits with 2 for an unknown argument", async () => {
    const { errors, exited } = run([...words, "--trust-remote-code"])
    expect(await exited).toBe(2)
    expect(errors()).toContain("error: unrecognized arguments: --trust-remote-code")
  })
})
