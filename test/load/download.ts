import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtemp, rm, statfs } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Config, Effect, Schema } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { figureOf, show, table } from "./figures.ts"
import { BenchError, startProgram } from "./Program.ts"

const Told = Schema.fromJsonString(Schema.Struct({ millis: Schema.Finite, bytes: Schema.Finite }))

/** Runs a command. Returns its output and its duration in seconds. */
const run = (command: string, words: ReadonlyArray<string>, environment: Readonly<Record<string, string>>) =>
  Effect.callback<{ readonly seconds: number; readonly text: string }, BenchError>((resume) => {
    const begun = performance.now()
    let text = ""
    let wrong = ""
    const child = spawn(command, words, { env: { PATH: process.env.PATH ?? "", ...environment }, stdio: ["ignore", "pipe", "pipe"] })
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8")
    })
    child.stderr.on("data", (chunk: Buffer) => {
      wrong = (wrong + chunk.toString("utf8")).slice(-2_000)
    })
    child.once("error", (error) => resume(Effect.fail(new BenchError({ message: `${command} cannot be run: ${error.message}` }))))
    child.once("close", (code) =>
      resume(
        code === 0
          ? Effect.succeed({ seconds: (performance.now() - begun) / 1_000, text })
          : Effect.fail(new BenchError({ message: `${command} ended with ${code}: ${wrong}` }))
      )
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Seconds that one core needs to hash this many cached bytes. It is a lower bound for downloads that hash in one thread. */
const hashFloor = (size: number): number => {
  const block = new Uint8Array(1024 * 1024)
  const hash = createHash("sha256")
  const begun = performance.now()
  for (let at = 0; at < 2 ** 30; at += block.length) hash.update(block)
  hash.digest()
  return ((performance.now() - begun) / 1_000) * (size / 2 ** 30)
}

/** A folder in memory if there is enough, so that no disk is measured. */
const folderFor = Effect.fnUntraced(function* (bytes: number) {
  const room = yield* Effect.promise(() =>
    statfs("/dev/shm").then(
      ({ bavail, bsize }) => bavail * bsize,
      () => 0
    )
  )
  const parent = room > 2 * bytes ? "/dev/shm" : tmpdir()
  return yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(parent, "seatrial-download-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
  )
})

export const download: Benchmark = {
  name: "download",
  title: "Download of a model, against curl",
  measure: Effect.fnUntraced(function* () {
    const size = yield* Config.Int("BENCH_DOWNLOAD_BYTES").pipe(Config.withDefault(4 * 1024 ** 3))
    const rounds = yield* Config.Int("BENCH_DOWNLOAD_ROUNDS").pipe(Config.withDefault(5))
    const connections = 8
    const folder = yield* folderFor(size)
    const storage = yield* startProgram({
      name: "storage",
      file: join(import.meta.dirname, "storage/main.ts"),
      environment: (port) => ({ STORAGE_PORT: String(port), STORAGE_BYTES: String(size) }),
      readyPath: "/ready"
    })
    const address = `http://${storage.host}:${storage.port}`
    const sha256 = yield* Effect.promise(async () => (await fetch(`${address}/sha256`)).text())

    const share = Math.ceil(size / connections)
    const ranges = Array.from({ length: connections }, (_, index) => [index * share, Math.min((index + 1) * share, size) - 1] as const)
    const words = ranges.flatMap(([from, to], index) => [
      ...(index === 0 ? [] : ["--next"]),
      ...["--silent", "--show-error", "--fail", "--range", `${from}-${to}`, "--output", join(folder, `curl-${index}`), `${address}/file`]
    ])
    const clear = Effect.promise(async () => {
      for (const name of [...ranges.map((_, index) => `curl-${index}`), "model"]) await rm(join(folder, name), { recursive: true, force: true })
    })
    const curl = run("curl", ["--parallel", "--parallel-immediate", "--parallel-max", String(connections), ...words], {})
    const sum = run(
      "sha256sum",
      ranges.map((_, index) => join(folder, `curl-${index}`)),
      {}
    )
    // With the settings of a download Job.
    const environment = {
      HF_ENDPOINT: address,
      HUB_CONCURRENCY: String(connections),
      NODE_OPTIONS: "--max-old-space-size=128 --max-semi-space-size=2"
    }
    const ours = run(process.execPath, [join(import.meta.dirname, "downloader/main.ts"), join(folder, "model"), String(size), sha256], environment)

    const measurements: Array<{
      readonly curl: number
      readonly hashed: number
      readonly floor: number
      readonly ours: number
      readonly processSeconds: number
      readonly bytes: number
    }> = []
    // The first round is a warm-up.
    for (let round = 0; round <= rounds; round++) {
      const peer = yield* curl
      const hashing = yield* sum
      yield* clear
      const own = yield* ours
      yield* clear
      const figures = yield* Effect.mapError(Schema.decodeEffect(Told)(own.text), () => new BenchError({ message: "The downloader prints no figures." }))
      if (round > 0) {
        const hashed = peer.seconds + hashing.seconds
        measurements.push({
          curl: peer.seconds,
          hashed,
          floor: hashFloor(size),
          ours: figures.millis / 1_000,
          processSeconds: own.seconds,
          bytes: figures.bytes
        })
      }
    }
    const speed = (seconds: (round: (typeof measurements)[number]) => number) => show(figureOf(measurements.map((round) => size / seconds(round) / 1_000_000)))
    type Seconds = (round: (typeof measurements)[number]) => number
    const ratio = (to: Seconds, seconds: Seconds) => show(figureOf(measurements.map((round) => to(round) / seconds(round))), 2)
    const row = (name: string, seconds: Seconds, memory = "") => [
      name,
      speed(seconds),
      ratio(({ curl }) => curl, seconds),
      ratio(({ hashed }) => hashed, seconds),
      memory
    ]
    return `One file of ${(size / 1024 ** 3).toFixed(0)} GiB over loopback into \`${folder.startsWith("/dev/shm") ? "/dev/shm" : tmpdir()}\`, over ${connections} connections each: \`curl --parallel\` writes eight ranges into eight files and
hashes nothing; \`seatrial fetch\`'s download writes one file, hashes it (SHA-256), syncs it and gives it its name. The server is a separate process and sends from memory.

${table(
  ["", "MB/s", "× curl", "× curl and `sha256sum`", "memory at most, MB"],
  [
    row("curl", ({ curl }) => curl),
    row("curl, then `sha256sum` of what came", ({ hashed }) => hashed),
    row("download", ({ ours }) => ours, show(figureOf(measurements.map(({ bytes }) => bytes / 1_000_000)))),
    row("the same with the start of its process", ({ processSeconds: whole }) => whole),
    row("SHA-256 of bytes that are in the cache, one core", ({ floor }) => floor)
  ]
)}`
  })
}
