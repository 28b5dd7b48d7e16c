import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../eventually.ts"
import { makeStateFolder } from "../LocalSystem.ts"
import { processesOf } from "../processesOf.ts"

const file = join(import.meta.dirname, "../../../packages/local/src/demo/main.ts")

/** Runs the demo like a shell, in a new process group, without a terminal. */
const startDemo = Effect.fnUntraced(function* (folder: string, settings: Readonly<Record<string, string>> = {}) {
  const { HOME = "/tmp", PATH = "" } = process.env
  const output = { out: "", err: "" }
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const started = spawn(process.execPath, [file], {
        detached: true,
        env: { HOME, PATH, SEATRIAL_STATE: folder, ...settings },
        stdio: ["ignore", "pipe", "pipe"]
      })
      started.stdout.on("data", (chunk: Buffer) => {
        output.out += chunk.toString()
      })
      started.stderr.on("data", (chunk: Buffer) => {
        output.err += chunk.toString()
      })
      return started
    }),
    (running) => Effect.sync(() => running.kill("SIGKILL"))
  )
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? signal))
  })
  return {
    output,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    ended: Effect.promise(() => ended),
    signalGroup: (name: NodeJS.Signals) => Effect.sync(() => process.kill(-(child.pid ?? 0), name))
  }
})

/** An unused port. */
const closedPort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(address === null || typeof address === "string" ? 9 : address.port)))
  })
})

const idsIn = (text: string, prefix: string) => [...text.matchAll(new RegExp(`\\b${prefix}_[0-9a-z]{26}\\b`, "g"))].map(([id]) => id)

it.live(
  "the demo shows each step from a refused preview to the receipt and a replay, and leaves no process or folder",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const { ended, output } = yield* startDemo(folder)
      assert.strictEqual(yield* ended, 0, output.err)
      assert.strictEqual(output.err, "")
      const headings = output.out.split(/^\d+\. /m).slice(1)
      const about = (start: string) => {
        const section = headings.find((each) => each.startsWith(start))
        assert.isDefined(section, `${start}: ${output.out}`)
        return section
      }
      assert.match(about("A preview of a model that is too large"), /refused +does_not_fit: .+\n +remedy +\S/)
      assert.match(about("A preview of a model that fits"), /derived +seatrial\/tiny-chat at commit [0-9a-f]{40}\n[\s\S]*fits on sim-small/)
      const phases = [...about("Its phases").matchAll(/^ {3}([a-z]+)(?: +\d+\.\d\d s)?$/gm)].map(([, phase]) => phase)
      const worked = ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating", "activated"]
      assert.deepStrictEqual(
        phases.filter((phase) => phase !== "waiting" && phase !== "queued"),
        worked
      )
      const trial = about("Its trial")
      assert.match(trial, /^ {3}pass \S/m)
      assert.notInclude(trial, "FAIL")
      assert.match(trial, /measured +estimated\n +weights +[\d.]+ MiB +[\d.]+ MiB\n +KV cache +[\d.]+ MiB +[\d.]+ MiB/)
      assert.match(trial, /benchmark, c=1 +[1-9]\d* tokens\/s/)
      // With wrong weights, a wrong template or wrong positions the answer would differ.
      assert.match(
        about("A streamed answer of local/tiny-chat"),
        /^ {3}you {4}What does a sea trial show\?\n {3}model {2}A sea trial shows whether a new ship does what was promised, before it is accepted\.$/m
      )
      const record = about("Its request record")
      assert.match(record, /state +completed, status 200/)
      assert.match(record, /tokens +[1-9]\d* in, [1-9]\d* out/)
      const receipt = about("Its receipt")
      assert.match(receipt, /weights +commit [0-9a-f]{40}\n[\s\S]*engine +reference-[\s\S]*verified by +(\d+) of \1 checks passed/)
      assert.deepStrictEqual(idsIn(receipt, "req"), idsIn(record, "req"))
      const again = about("The same create request again")
      assert.include(again, "(200, replayed: true)")
      assert.deepStrictEqual(idsIn(again, "dep"), idsIn(about("Create the deployment"), "dep"))
      assert.include(about("Try it yourself"), "get mdep")
      // Without a terminal there are no colors and no overwritten lines.
      for (const control of ["\u001b", "\r"]) assert.notInclude(output.out, control)
      assert.deepStrictEqual([processesOf(folder), readdirSync(folder)], [[], []])
    }).pipe(Effect.scoped),
  600_000
)

it.live(
  "Ctrl-C during the phases ends the demo with 130 and leaves no process or folder",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const { ended, hasEnded, output, signalGroup } = yield* startDemo(folder)
      yield* eventually(
        "a phase is over",
        Effect.sync(() => output.out + output.err),
        (text) => hasEnded() || text.includes("   screening ")
      )
      assert.include(output.out, "Its phases", output.err)
      yield* signalGroup("SIGINT")
      // A few seconds are acceptable at a terminal. Processes that do not exit are killed after fifteen.
      const code = yield* ended.pipe(Effect.timeoutOrElse({ duration: "5 minutes", orElse: () => Effect.die(new Error("the demo does not end")) }))
      assert.deepStrictEqual([code, output.err], [130, ""])
      assert.notInclude(output.out, "activated")
      assert.deepStrictEqual([processesOf(folder), readdirSync(folder)], [[], []])
    }).pipe(Effect.scoped),
  600_000
)

it.live(
  "a failed step ends the demo with 1 and a sentence that names the step and an existing log",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const HF_ENDPOINT = `http://127.0.0.1:${yield* closedPort}`
      const { ended, output } = yield* startDemo(folder, { HF_ENDPOINT })
      assert.strictEqual(yield* ended, 1, output.out)
      assert.match(output.err, /^The step "refused preview" failed: .*hub/)
      const log = /^Read (.+)\.$/m.exec(output.err)?.[1] ?? ""
      assert.isTrue(log.startsWith(folder), output.err)
      assert.isNotEmpty(readFileSync(log, "utf8"))
      assert.deepStrictEqual(processesOf(folder), [])
    }).pipe(Effect.scoped),
  600_000
)
