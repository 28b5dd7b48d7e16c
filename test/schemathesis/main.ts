import { spawn } from "node:child_process"
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeRuntime } from "@effect/platform-node"
import { Ids } from "@seatrial/domain"
import { EmbeddedPostgres, SampleHub } from "@seatrial/local"
import { ApiKeys, Database, Deployments, HostClasses, HubConnections, Metering, ModelAdmin, Organizations, Runs } from "@seatrial/store"
import { Config, ConfigProvider, Console, Context, Effect, Layer, Schema } from "effect"
import { startServer } from "../contract/ServerProcess.ts"
import { seed } from "./seed.ts"

// Runs Schemathesis against the stand-alone server, with and without a key. `run` in this folder starts it.

const folder = import.meta.dirname

const encryptionKey = Buffer.alloc(32, 7).toString("base64")

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    const path = await mkdtemp(join(tmpdir(), "seatrial-schemathesis-"))
    // The account that Postgres runs as must be able to reach it.
    await chmod(path, 0o755)
    return path
  }),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

const layerStore = (url: Parameters<typeof Database.layerUrl>[0]) =>
  Layer.mergeAll(
    Organizations.layerSql,
    ApiKeys.layerSql,
    Deployments.layerSql,
    HostClasses.layerSql,
    Metering.layerSql,
    ModelAdmin.layerSql,
    Runs.layerSql.pipe(Layer.provide(HubConnections.layerSql))
  ).pipe(
    Layer.provide([Database.layerUrl(url, { applicationName: "seatrial-test" })]),
    Layer.provideMerge(Ids.layer),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: encryptionKey })))
  )

const settings = Config.all({
  schemathesis: Config.String("SCHEMATHESIS"),
  /** Number of cases per operation in the fuzzing phase, and of sequences of operations. */
  examples: Config.Int("SCHEMATHESIS_EXAMPLES").pipe(Config.withDefault(90)),
  /** Minimum number of cases of both runs together. */
  atLeast: Config.Int("SCHEMATHESIS_AT_LEAST").pipe(Config.withDefault(5_000)),
  seed: Config.Int("SCHEMATHESIS_SEED").pipe(Config.withDefault(1))
})

/** Runs a program with inherited output and returns its exit code. */
const exitCode = (options: { readonly command: string; readonly words: ReadonlyArray<string>; readonly cwd: string }) =>
  Effect.callback<number>((resume) => {
    const { command, cwd, words } = options
    const child = spawn(command, words, {
      cwd,
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1" }
    })
    child.once("error", (error) => resume(Effect.die(error)))
    child.once("exit", (code) => resume(Effect.succeed(code ?? 1)))
    return Effect.sync(() => void child.kill("SIGTERM"))
  })

const Report = Schema.Struct({
  operations: Schema.Struct({ tested: Schema.Int, errored: Schema.Int }),
  phases: Schema.Record(Schema.String, Schema.Struct({ status: Schema.String })),
  test_cases: Schema.Struct({ generated: Schema.Int, with_failures: Schema.Int })
})
const decodeReport = Schema.decodeUnknownEffect(Schema.fromJsonString(Report))

const List = Schema.fromJsonString(Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) }))
const decodeList = Schema.decodeUnknownEffect(List)

/** The Schemathesis settings of this folder, extended with existing IDs, so that half of the reads find a record. */
const settingsFile = Effect.fnUntraced(function* (port: number, key: string) {
  const ids = Effect.fnUntraced(function* (name: string, path: string) {
    const headers = { authorization: `Bearer ${key}` }
    const text = yield* Effect.promise(async () => (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text())
    const { data } = yield* decodeList(text)
    return `[dictionaries.${name}]\nvalues = ${JSON.stringify(data.map(({ id }) => id))}`
  })
  const idOf = (name: string, ...paths: ReadonlyArray<string>) =>
    `[[operations]]\ninclude-path = ${JSON.stringify(paths)}\nparameters = { "path.id" = { dictionary = "${name}", probability = 0.5 } }`
  const parts = [
    yield* Effect.promise(() => readFile(join(folder, "schemathesis.toml"), "utf8")),
    yield* ids("requests", "/v1/requests"),
    yield* ids("deployments", "/v1/deployments"),
    yield* ids("models", "/v1/org/models"),
    yield* ids("events", "/v1/org/audit-events"),
    `[parameters]\n"path.request_id" = { dictionary = "requests", probability = 0.5 }\n"query.model_id" = { dictionary = "models", probability = 0.5 }`,
    idOf(
      "deployments",
      "/v1/deployments/{id}",
      "/v1/deployments/{id}/events",
      "/v1/deployments/{id}/progress",
      "/v1/deployments/{id}/cancel",
      "/v1/org/deployments/{id}"
    ),
    idOf("models", "/v1/org/models/{id}", "/v1/models/{id}/disable", "/v1/models/{id}/enable"),
    idOf("events", "/v1/org/audit-events/{id}")
  ]
  return parts.join("\n\n")
})

const main = Effect.gen(function* () {
  const options = yield* settings
  const directory = yield* temporaryFolder
  const postgres = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory, durable: false })), EmbeddedPostgres)
  yield* postgres.createDatabase("schemathesis")
  const url = postgres.url("schemathesis")
  const hub = Context.get(yield* Layer.build(SampleHub.layer({ port: 0 })), SampleHub)
  // Migrates, too: the server runs with its role, which cannot.
  const key = yield* Effect.scoped(Effect.provide(seed, layerStore(url)))
  const { port, program } = yield* startServer(url, { HF_ENDPOINT: hub.address })

  const configFile = join(directory, "schemathesis.toml")
  const configured = yield* settingsFile(port, key)
  yield* Effect.promise(() => writeFile(configFile, configured))

  const attack = Effect.fnUntraced(function* (name: string, credentials: ReadonlyArray<string>) {
    yield* Console.log(`\n== Schemathesis ${name}`)
    const cwd = join(directory, name.replaceAll(" ", "-"))
    yield* Effect.promise(() => mkdir(cwd))
    const words = [
      ...["--config-file", configFile, "run", `http://127.0.0.1:${port}/openapi.json`, "--checks", "all", "--no-color"],
      ...["--max-examples", String(options.examples), "--seed", String(options.seed), "--report", "json", "--report-json-path", "report.json"],
      ...credentials
    ]
    const code = yield* exitCode({ command: options.schemathesis, words, cwd })
    const report = yield* decodeReport(yield* Effect.promise(() => readFile(join(cwd, "report.json"), "utf8")))
    const idle = Object.entries(report.phases).flatMap(([phase, { status }]) => (status === "success" ? [] : [phase]))
    return { cases: report.test_cases.generated, whole: code === 0 && idle.length === 0 && report.operations.errored === 0 }
  })

  const withKey = yield* attack("with a key", ["--header", `Authorization: Bearer ${key}`])
  const withoutKey = yield* attack("without a key", [])
  if (program.hasExited()) return yield* Effect.fail(new Error(`The server ended: ${program.output()}`))
  const cases = withKey.cases + withoutKey.cases
  yield* Console.log(`\n${cases} cases in all`)
  if (!withKey.whole || !withoutKey.whole) return yield* Effect.fail(new Error("Schemathesis found failures, or did not run every phase"))
  if (cases < options.atLeast) return yield* Effect.fail(new Error(`at least ${options.atLeast} cases are wanted: raise SCHEMATHESIS_EXAMPLES`))
}).pipe(Effect.scoped)

NodeRuntime.runMain(main)
