import { spawn } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Env, main } from "../runCommand.ts"

layer(Env.layer)("a program started by the command", (it) => {
  const kubeconfig = join(tmpdir(), `seatrial-kubeconfig-${process.pid}`)
  const nowhere = { name: "nowhere", cluster: { server: "http://127.0.0.1:9" } }
  const context = { name: "nowhere", context: { cluster: "nowhere", user: "nobody", namespace: "seatrial" } }
  const config = { clusters: [nowhere], contexts: [context], "current-context": "nowhere", users: [{ name: "nobody", user: {} }] }
  const programs: ReadonlyArray<readonly [program: string, started: RegExp, env: Readonly<Record<string, string>>]> = [
    ["gateway", /gateway listens on/, { GATEWAY_HOST: "127.0.0.1", GATEWAY_PORT: "0", GATEWAY_DRAIN_SECONDS: "0" }],
    ["server", /Listening on/, { SERVER_PORT: "0", SEATRIAL_CURSOR_KEY: "0123456789abcdef", SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32).toString("base64") }],
    ["operator", /ECONNREFUSED/, { KUBECONFIG: kubeconfig, OPERATOR_PORT: "0", SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32).toString("base64") }]
  ]
  for (const [program, started, settings] of programs) {
    it.effect(`exits with 0 after a stop signal: ${program}`, () =>
      Effect.gen(function* () {
        const env = yield* Env
        writeFileSync(kubeconfig, JSON.stringify(config))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(kubeconfig, { force: true })))
        let log = ""
        const code = yield* Effect.callback<number | null>((resume) => {
          const child = spawn(process.execPath, [main, program], {
            cwd: tmpdir(),
            env: { PATH: process.env.PATH, ...env, DATABASE_ROLE: `seatrial_${program}`, ...settings },
            stdio: ["ignore", "pipe", "pipe"]
          })
          for (const output of [child.stdout, child.stderr]) {
            output.on("data", (chunk: Buffer) => {
              log += chunk.toString()
              if (started.test(log)) child.kill("SIGTERM")
            })
          }
          child.once("close", (exit) => resume(Effect.succeed(exit)))
          return Effect.sync(() => child.kill("SIGKILL"))
        })
        assert.strictEqual(code, 0, log)
      })
    )
  }

  it.effect("waits for a Postgres that does not answer yet", () =>
    Effect.gen(function* () {
      const env = yield* Env
      const database = new URL(env.DATABASE_URL ?? "")
      const proxy = createServer((socket) => {
        const upstream = connect(Number(database.port), database.hostname)
        for (const end of [socket, upstream]) end.on("error", () => end.destroy())
        socket.pipe(upstream).pipe(socket)
      })
      const port = yield* Effect.callback<number>((resume) => {
        const taken = createServer().listen(0, "127.0.0.1", () => {
          const address = taken.address()
          const free = typeof address === "object" && address !== null ? address.port : 0
          taken.close(() => resume(Effect.succeed(free)))
        })
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => proxy.close()))
      const url = Object.assign(new URL(database.href), { hostname: "127.0.0.1", port: String(port) }).href
      let log = ""
      const code = yield* Effect.callback<number | null>((resume) => {
        const child = spawn(process.execPath, [main, "gateway"], {
          cwd: tmpdir(),
          env: {
            PATH: process.env.PATH,
            ...env,
            DATABASE_URL: url,
            DATABASE_ROLE: "seatrial_gateway",
            DATABASE_WAIT: "1 minute",
            GATEWAY_HOST: "127.0.0.1",
            GATEWAY_PORT: "0",
            GATEWAY_DRAIN_SECONDS: "0"
          },
          stdio: ["ignore", "pipe", "inherit"]
        })
        child.stdout.on("data", (chunk: Buffer) => {
          log += chunk.toString()
          if (!proxy.listening && log.includes("Postgres does not answer yet")) proxy.listen(port, "127.0.0.1")
          if (log.includes("gateway listens on")) child.kill("SIGTERM")
        })
        child.once("close", (exit) => resume(Effect.succeed(exit)))
        return Effect.sync(() => child.kill("SIGKILL"))
      })
      assert.strictEqual(code, 0, log)
      assert.strictEqual(log.split("Postgres does not answer yet").length, 2)
    })
  )
})
