import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises"
import { createServer, type IncomingMessage } from "node:http"
import { connect as connectTcp, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { RepositoryFacts } from "@seatrial/domain"
import { checkWeights, type FetchProgress, type Hub, manifestSha256 } from "@seatrial/hub"
import { Deferred, Effect, Fiber, Option, Redacted, Schema } from "effect"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { sampleHubToken } from "../../src/hub/SampleHub.ts"
import { makeRepository } from "../../src/hub/SampleRepository.ts"
import { safetensors, tinyFiles } from "../hub/tinyFiles.ts"
import { withHub } from "../hub/withHub.ts"

const none = Option.none<Redacted.Redacted<string>>()
const weights = "model.safetensors"
const dataBytes = 2_000_000
const smallChunk = 64 * 1024
const files = {
  ...tinyFiles(1),
  [weights]: safetensors({ a: { dtype: "F32", shape: [dataBytes / 4], data_offsets: [0, dataBytes] } }, dataBytes, 1)
}
const repositories = [makeRepository({ name: "odd/model", commits: [{ title: "Weights of two megabytes", files }] })]

const temporary = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-hub-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

interface Scene {
  readonly hub: Hub["Service"]
  readonly facts: RepositoryFacts
  /** The target of the download. Its parent is empty at first. */
  readonly directory: string
  readonly parent: string
  readonly asked: ReadonlyArray<HubRequest>
  readonly address: string
  readonly fetch: (onProgress?: (progress: FetchProgress) => Effect.Effect<void>) => ReturnType<Hub["Service"]["fetch"]>
}

/** An inspected repository and an empty target directory. `faults` apply only to the download of its weights. */
const scene = <A, E>(
  use: (scene: Scene) => Effect.Effect<A, E>,
  faults: (request: HubRequest) => HubFault | undefined = () => undefined,
  chunkBytes = 16 * 1024 * 1024
) => {
  let armed = false
  return withHub(
    (hub, asked, address) =>
      Effect.gen(function* () {
        const parent = yield* temporary
        const facts = yield* hub.inspect({ repo: "odd/model" }, none)
        armed = true
        const directory = join(parent, facts.commit)
        const { commit, files, repo } = facts
        const fetch: Scene["fetch"] = (onProgress) =>
          hub.fetch({ repo, commit, files, directory, token: none, ...(onProgress === undefined ? {} : { onProgress }) })
        return yield* use({ hub, facts, directory, parent, asked, address, fetch })
      }).pipe(Effect.scoped),
    {
      repositories,
      faults: (request) => (armed && request.file === weights ? faults(request) : undefined),
      settings: { HUB_TIMEOUT: "1 second", HUB_DOWNLOAD_RETRIES: "3", HUB_CHUNK_BYTES: String(chunkBytes) }
    }
  )
}

/** Asserts that the directory contains exactly the files of the commit, and its parent nothing else. */
const assertWhole = ({ directory, facts, parent }: Scene) =>
  Effect.promise(async () => {
    assert.deepStrictEqual(await readdir(parent), [facts.commit])
    const names = facts.files.map(({ path }) => path)
    assert.deepStrictEqual((await readdir(directory)).sort(), [".seatrial-manifest.json", ".seatrial-verified.json", ...names])
    for (const [name, content] of Object.entries(files)) {
      if (names.includes(name)) assert.isTrue(Buffer.from(content).equals(await readFile(join(directory, name))), name)
    }
  })

const assertAbsent = ({ directory, parent }: Scene) => Effect.promise(async () => assert.notInclude(await readdir(parent), directory.slice(parent.length + 1)))

/** Injects a fault into the first request that matches the predicate. */
const failOnce = (fault: HubFault, predicate: (request: HubRequest) => boolean = () => true) => {
  let sent = false
  return (request: HubRequest) => {
    if (sent || !predicate(request)) return undefined
    sent = true
    return fault
  }
}

describe("fetch", () => {
  it.live("downloads every file that serving needs, reports progress, and requests nothing the second time", () =>
    scene((scene) =>
      Effect.gen(function* () {
        const seen: Array<FetchProgress> = []
        yield* scene.fetch((progress) => Effect.sync(() => seen.push(progress)))
        yield* assertWhole(scene)
        const total = scene.facts.files.reduce((sum, { size }) => sum + size, 0)
        assert.deepStrictEqual(seen.at(-1), { bytes: total, totalBytes: total, waiting: false })
        for (const [index, { bytes }] of seen.entries()) assert.isAtLeast(bytes, seen[index - 1]?.bytes ?? 0)
        const before = scene.asked.length
        yield* scene.fetch()
        assert.strictEqual(scene.asked.length, before)
      })
    )
  )

  it.live("fails with the number of differing files if a second download also differs, and shows no directory", () =>
    scene(
      (scene) =>
        Effect.gen(function* () {
          const before = scene.asked.length
          const error = yield* Effect.flip(scene.fetch())
          assert.strictEqual(error._tag, "WeightsMismatch")
          if (error._tag === "WeightsMismatch") {
            assert.strictEqual(
              error.detail,
              `1 of ${scene.facts.files.length} files differs from commit ${scene.facts.commit.slice(0, 7)} after two downloads: ${weights}.`
            )
          }
          assert.strictEqual(scene.asked.slice(before).filter(({ file }) => file === weights).length, 2)
          yield* assertAbsent(scene)
        }),
      () => ({ kind: "corrupt", offset: dataBytes / 2 })
    )
  )

  it.live.each([
    ["a corrupted body", { kind: "corrupt", offset: 1_000 }],
    ["a body that ends early", { kind: "cut", after: 500_000 }],
    ["a body that stops", { kind: "stall", after: 500_000 }],
    ["another range than was asked for", { kind: "shift", by: 5 }],
    ["an ignored range", { kind: "whole" }],
    ["a status of 503", { kind: "status", status: 503 }],
    ["a status of 429", { kind: "status", status: 429, headers: { "retry-after": "0" } }]
  ] as const satisfies ReadonlyArray<readonly [string, HubFault]>)("recovers if %s", ([, fault]) =>
    scene((scene) => Effect.andThen(scene.fetch(), assertWhole(scene)), failOnce(fault))
  )

  it.live.each([
    ["cuts every answer short", { kind: "cut", after: 100 }],
    ["always sends other ranges", { kind: "shift", by: 5 }],
    ["always fails", { kind: "status", status: 500 }]
  ] as const satisfies ReadonlyArray<readonly [string, HubFault]>)("stops after a limited number of requests if the hub %s", ([, fault]) =>
    scene(
      (scene) =>
        Effect.gen(function* () {
          const before = scene.asked.length
          assert.strictEqual((yield* Effect.flip(scene.fetch()))._tag, "HubUnavailable")
          assert.strictEqual(scene.asked.slice(before).filter(({ file }) => file === weights).length, 4)
          yield* assertAbsent(scene)
        }),
      () => fault
    )
  )

  it.live.prop(
    "gives the same bytes after an interruption anywhere, and repeats at most one chunk per connection",
    [Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: dataBytes }))],
    ([stopAt]) =>
      scene(
        (scene) =>
          Effect.gen(function* () {
            const reached = yield* Deferred.make<void>()
            const fiber = yield* Effect.forkChild(scene.fetch(({ bytes }) => (bytes >= stopAt ? Deferred.succeed(reached, undefined) : Effect.void)))
            yield* Deferred.await(reached)
            yield* Fiber.interrupt(fiber)
            const before = scene.asked.length
            yield* scene.fetch()
            yield* assertWhole(scene)
            const ranges = (requests: ReadonlyArray<HubRequest>) => requests.filter(({ file }) => file === weights).map(({ range }) => range)
            const [first, second] = [ranges(scene.asked.slice(0, before)), ranges(scene.asked.slice(before))]
            const chunks = Math.ceil(files[weights].length / smallChunk)
            // The first of them reads the headers.
            assert.isAtLeast(new Set([...first, ...second]).size, chunks)
            assert.isAtMost(first.filter((range) => second.includes(range)).length, 8)
          }),
        undefined,
        smallChunk
      ),
    { arbitrary: { runs: 6 } }
  )

  it.live("restarts a file whose partial content is not that of the commit", () =>
    scene(
      (scene) =>
        Effect.gen(function* () {
          const reached = yield* Deferred.make<void>()
          const fiber = yield* Effect.forkChild(scene.fetch(({ bytes }) => (bytes >= dataBytes / 2 ? Deferred.succeed(reached, undefined) : Effect.void)))
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(fiber)
          yield* Effect.promise(async () => {
            const [partial] = await readdir(scene.parent)
            await writeFile(join(scene.parent, partial ?? "", `${weights}.part`), Buffer.alloc(dataBytes / 4))
          })
          yield* scene.fetch()
          yield* assertWhole(scene)
        }),
      failOnce({ kind: "stall", after: 1_200_000 })
    )
  )

  it.live("allows several downloads into one directory at once", () =>
    scene((scene) =>
      Effect.gen(function* () {
        yield* Effect.all([scene.fetch(), scene.fetch(), scene.fetch()], { concurrency: "unbounded" })
        yield* assertWhole(scene)
      })
    )
  )

  it.live("replaces a directory whose content is not that of the commit", () =>
    scene((scene) =>
      Effect.gen(function* () {
        yield* Effect.promise(async () => {
          await mkdir(scene.directory)
          await writeFile(join(scene.directory, "model.py"), "")
        })
        yield* scene.fetch()
        yield* assertWhole(scene)
      })
    )
  )

  it.live("detects a changed byte in a complete directory, and downloads only this file again", () =>
    scene((scene) =>
      Effect.gen(function* () {
        yield* scene.fetch()
        const { directory, facts, hub } = scene
        const { commit, files, repo } = facts
        const path = join(directory, weights)
        const manifest = manifestSha256(files)
        const check = (verify: "recorded" | "full" = "recorded") => checkWeights({ repo, commit, manifest, directory, verify })
        const changeByte = Effect.promise(async () => {
          const before = await stat(path)
          const file = await open(path, "r+")
          await file.write(new Uint8Array([7]), 0, 1, 1_000_000)
          await file.close()
          // Hides the change by restoring the times.
          await utimes(path, before.atime, before.mtime)
        })
        assert.strictEqual(yield* check(), files.length)
        yield* changeByte
        const changed = yield* Effect.flip(check())
        assert.strictEqual(changed._tag, "WeightsMismatch")
        assert.include(changed._tag === "WeightsMismatch" ? changed.detail : "", weights)
        const before = scene.asked.length
        yield* scene.fetch()
        yield* assertWhole(scene)
        assert.deepStrictEqual([...new Set(scene.asked.slice(before).map(({ file }) => file))], [weights])
        assert.strictEqual(yield* check("full"), files.length)

        // A file that only looks changed is verified again without any request.
        yield* Effect.promise(() => utimes(path, new Date(0), new Date(0)))
        const asked = scene.asked.length
        assert.strictEqual(yield* check(), files.length)
        yield* hub.fetch({ repo, commit, files, directory, token: none })
        assert.strictEqual(scene.asked.length, asked)
        yield* Effect.promise(() => rm(join(directory, ".seatrial-verified.json")))
        yield* scene.fetch()
        yield* assertWhole(scene)
        assert.strictEqual(scene.asked.length, asked)
      })
    )
  )

  it.live("uses the proxy of the environment", () =>
    scene((scene) =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const proxy = createServer()
        proxy.on("connect", (request: IncomingMessage, client: Socket, head: Buffer) => {
          asked.push(`${request.url} ${request.headers["proxy-authorization"]}`)
          const { hostname, port } = new URL(`http://${request.url}`)
          const hub = connectTcp(Number(port), hostname, () => {
            client.write("HTTP/1.1 200 Connection established\r\n\r\n")
            hub.write(head)
            hub.pipe(client).pipe(hub)
          })
          hub.on("error", () => client.destroy())
          client.on("error", () => hub.destroy())
        })
        const port = yield* Effect.acquireRelease(
          Effect.callback<number>((resume) => {
            proxy.listen(0, "127.0.0.1", () => {
              const address = proxy.address()
              resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
            })
          }),
          () => Effect.sync(() => void proxy.close())
        )
        yield* Effect.acquireRelease(
          Effect.sync(() => Object.assign(process.env, { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: `http://user:pass@127.0.0.1:${port}` })),
          () =>
            Effect.sync(() => {
              delete process.env.NODE_USE_ENV_PROXY
              delete process.env.HTTP_PROXY
            })
        )
        yield* scene.fetch()
        yield* assertWhole(scene)
        assert.isAtLeast(asked.length, 1)
        assert.deepStrictEqual([...new Set(asked)], [`${new URL(scene.address).host} Basic ${Buffer.from("user:pass").toString("base64")}`])
      }).pipe(Effect.scoped)
    )
  )

  it.live("skips every file that an engine could execute, whatever the list contains", () =>
    scene((scene) =>
      Effect.gen(function* () {
        const { commit, repo } = scene.facts
        const before = scene.asked.length
        const code = ["modeling.py", "pytorch_model.bin", "model.pt", "model.pth", "model.pkl", "model.ckpt", "tokenizer.py", "LICENSE.py", "MODEL.PY", "a.so"]
        for (const path of [...code, "../config.json", "a/model.safetensors", ".hidden"]) {
          const file = { path, size: 1, blob_id: "0".repeat(40), sha256: null }
          const error = yield* Effect.flip(scene.hub.fetch({ repo, commit, files: [file], directory: scene.directory, token: none }))
          assert.strictEqual(error._tag, "HubRefusal", path)
        }
        assert.strictEqual(scene.asked.length, before)
        yield* assertAbsent(scene)
      })
    )
  )

  it.live("reports missing disk space before it requests anything", () =>
    scene((scene) =>
      Effect.gen(function* () {
        const before = scene.asked.length
        const file = { path: weights, size: 2 ** 50, blob_id: "0".repeat(40), sha256: "0".repeat(64) }
        const { commit, repo } = scene.facts
        const error = yield* Effect.flip(scene.hub.fetch({ repo, commit, files: [file], directory: scene.directory, token: none }))
        assert.strictEqual(error._tag, "StoreFull")
        if (error._tag === "StoreFull")
          assert.match(error.message, /^The weights store needs 1125899906842624 more bytes for this model, but only \d+ bytes are free\. Ask/)
        assert.strictEqual(scene.asked.length, before)
      })
    )
  )

  it.live("reports a volume that fills up midway, shows no directory, and continues when there is space", () =>
    scene(
      (scene) =>
        Effect.gen(function* () {
          const reached = yield* Deferred.make<void>()
          const fiber = yield* Effect.forkChild(scene.fetch(({ bytes }) => (bytes >= dataBytes / 2 ? Deferred.succeed(reached, undefined) : Effect.void)))
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(fiber)
          yield* Effect.promise(async () => {
            const [partial = ""] = await readdir(scene.parent)
            const part = join(scene.parent, partial, `${weights}.part`)
            await rm(part)
            // Every write to it fails because no space is left.
            await symlink("/dev/full", part)
          })
          const error = yield* Effect.flip(scene.fetch())
          assert.strictEqual(error._tag, "StoreFull")
          yield* assertAbsent(scene)
          yield* Effect.promise(async () => {
            const [partial = ""] = await readdir(scene.parent)
            await rm(join(scene.parent, partial, `${weights}.part`))
          })
          yield* scene.fetch()
          yield* assertWhole(scene)
        }),
      failOnce({ kind: "stall", after: 1_200_000 })
    )
  )

  it.live("refuses a gated repository without a token and downloads it with one", () =>
    withHub((hub) =>
      Effect.gen(function* () {
        const token = Option.some(Redacted.make(sampleHubToken))
        const directory = join(yield* temporary, "gated")
        const { commit, files, repo } = yield* hub.inspect({ repo: "seatrial/tiny-chat-gated" }, token)
        const error = yield* Effect.flip(hub.fetch({ repo, commit, files, directory, token: none }))
        assert.strictEqual(error._tag === "HubRefusal" && error.code, "no_hub_connection")
        yield* hub.fetch({ repo, commit, files, directory, token })
        assert.include(yield* Effect.promise(() => readdir(directory)), weights)
      }).pipe(Effect.scoped)
    )
  )
})
