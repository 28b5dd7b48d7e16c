import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { Option, Schema } from "effect"
import { DemoError } from "./DemoError.ts"

const State = Schema.fromJsonString(Schema.Struct({ address: Schema.String, api_key: Schema.String, kubeconfig: Schema.String, hub: Schema.String }))
type State = typeof State.Type

const Failure = Schema.Struct({ error: Schema.Struct({ message: Schema.String, code: Schema.String }) })

/** A running system that the demo uses only through its HTTP interface. */
export class Product {
  readonly state: State
  /** The log that shows the reason for a failure. */
  readonly log: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, folder: string, state: State) {
    this.#child = child
    this.log = logOf(folder)
    this.state = state
  }

  /**
   * Runs `npm start` with a state folder. The system is ready when its state file exists. Databases and clusters of the
   * user are not used.
   */
  static async start(folder: string, signal: AbortSignal): Promise<Product> {
    const child = spawn(process.execPath, [join(import.meta.dirname, "../main.ts")], {
      // In a separate process group, so that Ctrl-C reaches it only once, through this process.
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, SEATRIAL_STATE: folder, SEATRIAL_DURABLE: "false", SEATRIAL_PARENT_PIPE: "1", DATABASE_URL: "", KUBECONFIG: "" }
    })
    let output = ""
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_000)
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    const file = join(folder, "local.json")
    for (let waited = 0; waited < 600 && !signal.aborted; waited++) {
      if (child.exitCode !== null || child.signalCode !== null) break
      const state = existsSync(file) ? Schema.decodeUnknownOption(State)(readFileSync(file, "utf8")) : Option.none()
      if (Option.isSome(state)) return new Product(child, folder, state.value)
      await pause(100)
    }
    await end(child)
    const last = output.trim().split("\n").slice(-3).join(" ")
    throw new DemoError("start", signal.aborted ? "It was stopped." : `The system did not become ready. ${last}`, `Read ${logOf(folder)}.`)
  }

  stop(): Promise<void> {
    return end(this.#child)
  }

  /** Makes one call. An answer without success fails the step. */
  async call<A>(
    step: string,
    method: "GET" | "POST",
    path: string,
    schema: Schema.Codec<A, unknown>,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {}
  ) {
    const response = await this.send(step, method, path, body, headers)
    const text = await response.text()
    const parsed: unknown = text === "" ? null : JSON.parse(text)
    const failure = Schema.decodeUnknownOption(Failure)(parsed)
    if (Option.isSome(failure)) throw new DemoError(step, `${failure.value.error.message} (${failure.value.error.code})`, `Read ${this.log}.`)
    const decoded = Schema.decodeUnknownOption(schema)(parsed)
    if (Option.isNone(decoded))
      throw new DemoError(step, `${method} ${path} returned an unexpected answer: ${text.slice(0, 300)}`, "This is a bug in Seatrial: please report it.")
    return { status: response.status, headers: response.headers, body: decoded.value }
  }

  async send(step: string, method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    try {
      return await fetch(`${this.state.address}${path}`, {
        method,
        headers: { authorization: `Bearer ${this.state.api_key}`, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
    } catch {
      throw new DemoError(step, `${this.state.address} no longer answers.`, `Read ${this.log}.`)
    }
  }
}

const logOf = (folder: string): string => join(folder, "seatrial.log")

const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise<void>((resolve) => {
    child.once("exit", () => resolve())
  })
  child.kill("SIGINT")
  const late = setTimeout(() => child.kill("SIGKILL"), 15_000)
  await gone
  clearTimeout(late)
}
