import { spawn } from "node:child_process"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { imageList, parseManifests } from "../../packages/cli/src/imageList.ts"
import { render, renderText } from "./renderChart.ts"

const decodeContainers = Schema.decodeUnknownSync(
  Schema.NonEmptyArray(Schema.Struct({ command: Schema.Tuple([Schema.Literal("node"), Schema.String, Schema.String]), args: Schema.Array(Schema.String) }))
)
const { read } = render({}, { args: ["--is-upgrade=false"] })
const weightsCheck = decodeContainers(read("Job/seatrial-weights-check", "spec", "template", "spec", "containers"))[0]
const ready = decodeContainers(read("Pod/seatrial-test", "spec", "initContainers"))[0]

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly output: string
}

/** Runs a container's program as a process. `stopAt`: its output after which it gets SIGTERM, as from a kubelet. */
const runContainer = (
  args: ReadonlyArray<string>,
  { env = {}, stopAt }: { readonly env?: Readonly<Record<string, string>>; readonly stopAt?: RegExp } = {}
) => {
  const child = spawn(process.execPath, args, { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] })
  const ended = Promise.withResolvers<Ended>()
  let output = ""
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      if (stopAt?.test(output)) child.kill("SIGTERM")
    })
  child.once("close", (code, signal) => ended.resolve({ code, signal, output }))
  return { ended: ended.promise, stop: () => child.kill("SIGTERM") }
}

/** Makes a file system that does not answer. */
const silentStorage = `data:text/javascript,${encodeURIComponent(`
import files from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"
files.mkdtemp = () => new Promise(() => { setInterval(() => undefined, 1_000); console.log("waits for storage") })
syncBuiltinESMExports()
`)}`

describe("the programs of the chart's own containers", () => {
  const [, ...options] = weightsCheck.command
  const [program = ""] = weightsCheck.args

  it("weights-check writes to the claim, leaves nothing, and says how much is free", async () => {
    const weights = await mkdtemp(join(tmpdir(), "weights-"))
    const ended = await runContainer([...options, program, weights]).ended
    assert.strictEqual(ended.code, 0, ended.output)
    assert.match(ended.output, /^The claim for weights is there and can be written to: [0-9.]+ GiB are free\.\n$/u)
    assert.deepStrictEqual(await readdir(weights), [])
    await rm(weights, { recursive: true })
    assert.strictEqual((await runContainer([...options, program, weights]).ended).code, 1)
  })

  it("weights-check ends on SIGTERM although its storage does not answer", async () => {
    const { code, signal } = await runContainer(["--import", silentStorage, ...options, program, tmpdir()], { stopAt: /waits for storage/u }).ended
    assert.deepStrictEqual([code, signal], [143, null])
  })

  it("ready ends on SIGTERM while the server does not answer", async () => {
    const silent = createServer()
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
    const address = silent.address()
    const server = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
    const [, ...readyOptions] = ready.command
    const { ended, stop } = runContainer([...readyOptions, ...ready.args], { env: { SERVER: server, GATEWAY: server } })
    silent.on("connection", (socket) => {
      socket.resume()
      stop()
    })
    const { code, signal } = await ended
    await new Promise((resolve) => silent.close(resolve))
    assert.deepStrictEqual([code, signal], [143, null])
  })
})

describe("seatrial images", () => {
  it("lists what helm template prints: each image once, with its digest and all objects that use it", () => {
    const digest = `sha256:${"0".repeat(64)}`
    const postgres = `docker.io/library/postgres:18.4@${digest}`
    const values = {
      image: { repository: "registry.example/seatrial", tag: "1.2.3" },
      operator: { fetchImage: "registry.example/fetch:4" },
      postgres: { embedded: { enabled: true, image: postgres } }
    }
    const images = imageList(parseManifests(renderText(values, { args: ["--is-upgrade=false"] })) ?? [])
    const deployments = ["gateway", "operator", "server"].map((program) => `Deployment/seatrial-${program}`)
    assert.deepStrictEqual(images, [
      { image: postgres, digest, used_by: ["StatefulSet/seatrial-postgres"] },
      { image: "registry.example/fetch:4", digest: null, used_by: ["Deployment/seatrial-operator"] },
      {
        image: "registry.example/seatrial:1.2.3",
        digest: null,
        used_by: ["CronJob/seatrial-clean-weights", ...deployments, "Job/seatrial-weights-check", "Pod/seatrial-test"]
      }
    ])
  })
})
