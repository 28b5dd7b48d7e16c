import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { gatewaySettings } from "@seatrial/gateway/settings"
import { Hub, manifestSha256 } from "@seatrial/hub"
import { type HubFault, type HubRequest, SampleHub } from "@seatrial/local"
import { operatorSettings } from "@seatrial/operator/settings"
import { serverSettings } from "@seatrial/server/settings"
import { ConfigProvider, Context, Effect, Layer, Option } from "effect"
import { Env, main, noTrace, seatrial, seatrialProcess } from "./runCommand.ts"

describe("wrong use", () => {
  const wrong: ReadonlyArray<readonly [promise: string, args: ReadonlyArray<string>, says: RegExp, run: typeof seatrial]> = [
    ["an unknown command is reported by name", ["deplyo"], /deplyo/, seatrialProcess],
    ["a missing argument is reported by name", ["preview"], /repository/, seatrial],
    ["a missing receipt file is reported by name", ["receipts", "verify", "/nonexistent.jws"], /The file \/nonexistent\.jws does not exist\./, seatrial],
    ["a folder instead of a receipt file is reported by name", ["receipts", "verify", "/"], /The file \/ is a folder\./, seatrial],
    ["without a configured API the command says how to configure one", ["status", "dep_x"], /SEATRIAL_ADDRESS/, seatrialProcess],
    ["without Postgres the administration says how to configure it", ["admin", "orgs", "list"], /DATABASE_URL/, seatrialProcess]
  ]
  for (const [promise, args, says, run] of wrong) {
    it.live(promise, () =>
      Effect.gen(function* () {
        const ran = yield* run(args)
        assert.strictEqual(ran.code, 2)
        assert.strictEqual(ran.out, "")
        assert.match(ran.err, says)
        noTrace(ran)
      })
    )
  }

  it.live("a deploy with neither or both of a repository and a model is refused before a request is sent", () =>
    Effect.gen(function* () {
      for (const args of [["deploy"], ["deploy", "a/b", "--model-id", "mdl_x"]]) {
        const ran = yield* seatrial(args, { SEATRIAL_ADDRESS: "http://127.0.0.1:9", SEATRIAL_API_KEY: "k" })
        assert.strictEqual(ran.code, 2)
        assert.match(ran.out + ran.err, /either a repository or, with --model-id, a model/)
      }
    })
  )

  it.live("a delete without a terminal requires --yes", () =>
    Effect.gen(function* () {
      const nobody = { SEATRIAL_ADDRESS: "http://127.0.0.1:9", SEATRIAL_API_KEY: "k" }
      const unconfirmed = yield* seatrial(["models", "delete", "tiny"], nobody)
      assert.strictEqual(unconfirmed.code, 2)
      assert.match(unconfirmed.out + unconfirmed.err, /tiny will be deleted permanently.*Nothing was changed\. Confirm with --yes\./)
      const sent = yield* seatrial(["models", "delete", "tiny", "--yes"], nobody)
      assert.strictEqual(sent.code, 4)
    })
  )

  it.live("an unreachable server is reported in a sentence, without a stack trace", () =>
    Effect.gen(function* () {
      const ran = yield* seatrial(["status", "dep_x"], { SEATRIAL_ADDRESS: "http://127.0.0.1:9", SEATRIAL_API_KEY: "k" })
      assert.strictEqual(ran.code, 4)
      assert.match(ran.out + ran.err, /does not answer/)
      noTrace(ran)
    })
  )
})

describe("--help", () => {
  it.live("lists every command, and completions include lazily loaded commands", () =>
    Effect.gen(function* () {
      const [help, completions, admin] = yield* Effect.all([seatrial(["--help"]), seatrial(["--completions", "bash"]), seatrial(["admin", "--help"])], {
        concurrency: 2
      })
      for (const name of ["deploy", "admin", "server", "fetch", "migrate"]) assert.match(help.out, new RegExp(`^  ${name} {2,}\\S`, "m"))
      for (const word of ["hub-connections", "rotate-key", "--manifest", "--wait"]) assert.include(completions.out, word)
      assert.include(admin.out, "hub-connections")
    })
  )

  const programs = [
    ["server", serverSettings],
    ["operator", operatorSettings],
    ["gateway", gatewaySettings]
  ] as const
  for (const [program, settings] of programs) {
    it.live(`of ${program} lists every setting`, () =>
      Effect.gen(function* () {
        const { code, out } = yield* seatrial([program, "--help"])
        assert.strictEqual(code, 0)
        for (const { name } of settings) assert.include(out, name)
        for (const name of ["DATABASE_URL", "DATABASE_POOL_SIZE", "DATABASE_APPLICATION_NAME"]) assert.include(out, name)
      })
    )
  }
})

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

describe("fetch", () => {
  const directory = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-fetch-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const run = Effect.fnUntraced(function* (corrupt: boolean, manifest?: string) {
    // After the header, which screening reads.
    const faults = ({ file }: HubRequest): HubFault | undefined =>
      corrupt && file === "model.safetensors" ? { kind: "corrupt", offset: 1_000_000 } : undefined
    const hub = Context.get(yield* Layer.build(SampleHub.layer({ port: 0, faults })), SampleHub)
    const config = ConfigProvider.layer(ConfigProvider.fromUnknown({ HF_ENDPOINT: hub.address }))
    const facts = yield* Effect.provide(
      Effect.flatMap(Hub, (service) => service.inspect({ repo: "seatrial/tiny-chat" }, Option.none())),
      Hub.layer.pipe(Layer.provide(config))
    )
    const target = join(yield* directory, "weights")
    const args = ["fetch", "--repo", facts.repo, "--commit", facts.commit, "--directory", target, "--manifest", manifest ?? manifestSha256(facts.files)]
    return { ran: yield* (corrupt ? seatrialProcess : seatrial)(args, { HF_ENDPOINT: hub.address, HUB_RETRY_DELAY: "1 millis" }), target, facts }
  })

  it.live("reports a refusal of the hub in the terms of the token's owner", () =>
    Effect.gen(function* () {
      const hub = Context.get(yield* Layer.build(SampleHub.layer({ port: 0 })), SampleHub)
      const target = join(yield* directory, "weights")
      const args = ["fetch", "--repo", "seatrial/nothing", "--commit", "a".repeat(40), "--directory", target, "--manifest", "0".repeat(64)]
      const byUser = yield* seatrial(args, { HF_ENDPOINT: hub.address })
      assert.include(byUser.err, "repository_not_found: The hub has no repository seatrial/nothing, or does not show it to the user who owns this API key.")
      const byObject = yield* seatrial([...args, "--token-shared-by=acme"], { HF_ENDPOINT: hub.address })
      assert.include(byObject.err, "repository_not_found: The hub has no repository seatrial/nothing, or does not show it to the applied objects of acme.")
    }).pipe(Effect.scoped)
  )

  it.live("downloads the pinned files completely", () =>
    Effect.gen(function* () {
      const { facts, ran, target } = yield* run(false)
      assert.strictEqual(ran.code, 0, ran.err)
      for (const { path } of facts.files) assert.include(readdirSync(target), path)
    }).pipe(Effect.scoped)
  )

  it.live("fails with exit code 3 and a code in its last line if the bytes differ from the commit", () =>
    Effect.gen(function* () {
      const { ran } = yield* run(true)
      assert.strictEqual(ran.code, 3)
      assert.match(ran.out + ran.err, /weights_mismatch: 1 of \d+ files differ/)
    }).pipe(Effect.scoped)
  )

  it.live("fails before the download if the file list differs from the one at screening", () =>
    Effect.gen(function* () {
      const { ran } = yield* run(false, "0".repeat(64))
      assert.strictEqual(ran.code, 3)
      assert.match(ran.out + ran.err, /weights_mismatch/)
    }).pipe(Effect.scoped)
  )
})
