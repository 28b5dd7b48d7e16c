import { spawn } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { access, mkdir, mkdtemp, open, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Commit, type RepositoryFile } from "@seatrial/domain"
import { Effect } from "effect"
import { copyWeights } from "../../src/copy/copyWeights.ts"
import type { CopiesInUse, RemovedCopy } from "../../src/copy/freeSpace.ts"
import { manifestName, manifestOf } from "../../src/fetch/Manifest.ts"
import { recordName } from "../../src/fetch/VerifiedRecord.ts"
import { manifestSha256 } from "../../src/manifestSha256.ts"

const repo = "test/model"
const commits = ["a", "b", "c", "d", "e"].map((digit) => Commit.make(digit.repeat(40)))
const [commit = Commit.make("f".repeat(40)), ...rest] = commits
const weights = "model.safetensors"
const nobody: CopiesInUse = { at: 0, commits: [] }
const hour = 3_600_000

const git = (bytes: Uint8Array) => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex")

/** A store and a folder of a node. */
const scene = Effect.gen(function* () {
  const root = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-copy-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
  )
  const from = join(root, "store")
  const to = join(root, "node")
  const removed: Array<RemovedCopy> = []
  const listed = new Map<Commit, ReadonlyArray<RepositoryFile>>()
  /** Puts a commit into the store as a download does. */
  const store = async (of: Commit, contents: Readonly<Record<string, Uint8Array>>) => {
    const files = Object.entries(contents).map(([path, bytes]) => ({
      path,
      size: bytes.length,
      blob_id: git(bytes),
      sha256: path === weights ? createHash("sha256").update(bytes).digest("hex") : null
    }))
    const directory = join(from, repo, of)
    await mkdir(directory, { recursive: true })
    for (const [path, bytes] of Object.entries(contents)) await writeFile(join(directory, path), bytes)
    await writeFile(join(directory, manifestName), manifestOf(repo, of, files))
    listed.set(of, files)
    return files
  }
  const words = { from, to, repo, commit, manifest: "" }
  const copy = (of = commit, options: { readonly verify?: "recorded" | "full"; readonly inUse?: CopiesInUse } = {}) =>
    Effect.scoped(
      copyWeights({
        ...words,
        commit: of,
        manifest: manifestSha256(listed.get(of) ?? []),
        verify: options.verify ?? "recorded",
        inUse: options.inUse ?? nobody,
        onProgress: () => Effect.void,
        onRemoved: (copy) => Effect.sync(() => void removed.push(copy))
      })
    )
  const copyPath = (of = commit, path = weights) => join(to, repo, of, path)
  return { from, to, store, listed, copy, there: copyPath, removed }
})

type Scene = Effect.Success<typeof scene>

const config = Buffer.from('{"model_type":"llama"}')
const tensors = randomBytes(300_000)
const contents = { "config.json": config, [weights]: tensors }

/** A copy that was last used this long ago. */
const copyUsed = Effect.fnUntraced(function* ({ copy, store, there: copyPath }: Scene, of: Commit, ago: number) {
  yield* Effect.promise(() => store(of, contents))
  yield* copy(of)
  const at = (Date.now() - ago) / 1_000
  yield* Effect.promise(() => utimes(copyPath(of, manifestName), at, at))
})

const copyAll = tensors.length + config.length

describe("a node's copy of the weights", () => {
  it.live("equals the store, is complete or absent, and is reused", () =>
    Effect.gen(function* () {
      const stage = yield* scene
      const { copy, store, there: copyPath, to } = stage
      yield* Effect.promise(() => store(commit, contents))
      assert.deepStrictEqual(yield* copy(), { files: 2, copied: copyAll })
      assert.deepStrictEqual(yield* Effect.promise(() => readFile(copyPath())), tensors)
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(join(to, repo))), [commit])
      assert.deepStrictEqual(yield* copy(), { files: 2, copied: 0 })
      // Also long after its last use, and byte for byte.
      yield* Effect.promise(() => utimes(copyPath(commit, manifestName), 1, 1))
      assert.strictEqual((yield* copy()).copied, 0)
      assert.isAbove((yield* Effect.promise(() => stat(copyPath(commit, manifestName)))).mtimeMs, Date.now() - hour)
      assert.strictEqual((yield* copy(commit, { verify: "full" })).copied, 0)
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(join(to, repo))), [commit])
      // Regardless of the store.
      yield* Effect.promise(() => rm(stage.from, { recursive: true }))
      assert.strictEqual((yield* copy()).copied, 0)
      yield* Effect.promise(() => rm(copyPath()))
      assert.strictEqual((yield* Effect.flip(copy()))._tag, "WeightsAbsent")
    }).pipe(Effect.scoped)
  )

  it.live("is repaired from the store file by file after a file was written, truncated or removed", () =>
    Effect.gen(function* () {
      const { copy, store, there: copyPath } = yield* scene
      yield* Effect.promise(() => store(commit, contents))
      yield* copy()
      const spoils = [
        async () => {
          const file = await open(copyPath(), "r+")
          await file.write(Buffer.from([(tensors[7] ?? 0) ^ 1]), 0, 1, 7)
          await file.close()
        },
        () => truncate(copyPath(), 1_000),
        () => rm(copyPath())
      ]
      for (const spoil of spoils) {
        yield* Effect.promise(spoil)
        assert.strictEqual((yield* copy()).copied, tensors.length)
        assert.deepStrictEqual(yield* Effect.promise(() => readFile(copyPath())), tensors)
      }
    }).pipe(Effect.scoped)
  )

  it.live("with silent disk corruption is detected if it is read byte for byte", () =>
    Effect.gen(function* () {
      const { copy, store, there: copyPath } = yield* scene
      yield* Effect.promise(() => store(commit, contents))
      yield* copy()
      yield* Effect.promise(async () => {
        const file = await open(copyPath(), "r+")
        await file.write(Buffer.from([(tensors[7] ?? 0) ^ 1]), 0, 1, 7)
        await file.close()
        // A disk fault does not change the file's times, while every write does.
        const record = copyPath(commit, recordName)
        const { ctimeNs, mtimeNs } = await stat(copyPath(), { bigint: true })
        const recorded = JSON.parse(await readFile(record, "utf8"))
        await writeFile(record, JSON.stringify({ ...recorded, [weights]: { ...recorded[weights], changed: String(mtimeNs), status: String(ctimeNs) } }))
      })
      assert.strictEqual((yield* copy()).copied, 0)
      assert.strictEqual((yield* copy(commit, { verify: "full" })).copied, tensors.length)
      assert.deepStrictEqual(yield* Effect.promise(() => readFile(copyPath())), tensors)
    }).pipe(Effect.scoped)
  )

  it.live("is not made from a store with other bytes, another list or missing files", () =>
    Effect.gen(function* () {
      const { copy, from, listed, store, there: copyPath } = yield* scene
      yield* Effect.promise(() => store(commit, contents))
      const path = join(from, repo, commit, weights)
      yield* Effect.promise(() => writeFile(path, randomBytes(tensors.length)))
      const differs = yield* Effect.flip(copy())
      assert.match(
        differs._tag === "WeightsMismatch" ? differs.detail : "",
        /^model\.safetensors in the weights store differs from commit aaaaaaa: delete its directory test\/model\/a{40} there/
      )
      yield* Effect.promise(() => rm(path))
      const lost = yield* Effect.flip(copy())
      assert.match(lost._tag === "WeightsAbsent" ? lost.message : "", /has lost model\.safetensors of test\/model at aaaaaaa/)
      listed.set(commit, [])
      const absent = yield* Effect.flip(copy())
      assert.match(absent._tag === "WeightsAbsent" ? absent.message : "", /no complete copy of test\/model at aaaaaaa/)
      assert.isFalse(existsSync(dirname(copyPath())))
    }).pipe(Effect.scoped)
  )

  it.live("is made once if several pods need it at the same time", () =>
    Effect.gen(function* () {
      const { copy, store, there: copyPath, to } = yield* scene
      yield* Effect.promise(() => store(commit, contents))
      const results = yield* Effect.all([copy(), copy(), copy()], { concurrency: "unbounded" })
      assert.deepStrictEqual(results.map(({ copied }) => copied).sort(), [0, 0, copyAll])
      assert.deepStrictEqual(yield* Effect.promise(() => readFile(copyPath())), tensors)
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(join(to, repo))), [commit])
    }).pipe(Effect.scoped)
  )

  it.live("replaces unused copies, least recently used first, never used ones, and reports how much space is missing", () =>
    Effect.gen(function* () {
      const stage = yield* scene
      const { copy, from, listed, removed, there: copyPath, to } = stage
      const [old = commit, older = commit, used = commit, fresh = commit] = rest
      yield* copyUsed(stage, old, 5 * hour)
      yield* copyUsed(stage, older, 6 * hour)
      yield* copyUsed(stage, used, 7 * hour)
      yield* copyUsed(stage, fresh, 60_000)
      // The remains of a dead copy of another commit.
      const left = join(to, repo, `${used}.partial-elsewhere.7.01234567.1`)
      yield* Effect.promise(async () => {
        await mkdir(left)
        await writeFile(join(left, ".beat"), "")
        await utimes(join(left, ".beat"), 1, 1)
      })
      // A sparse file that no disk has space for takes no space itself.
      yield* Effect.promise(async () => {
        const files = await stage.store(commit, contents)
        const huge = files.map((file) => (file.path === weights ? { ...file, size: 2 ** 43 } : file))
        await truncate(join(from, repo, commit, weights), 2 ** 43)
        await writeFile(join(from, repo, commit, manifestName), manifestOf(repo, commit, huge))
        listed.set(commit, huge)
      })
      const full = yield* Effect.flip(copy(commit, { inUse: { at: Date.now(), commits: [used.slice(0, 12)] } }))
      assert.match(
        full._tag === "StoreFull" ? full.message : "",
        /needs 8192\.0 GiB \(\d+ bytes\), but only [\d.]+ GiB \(\d+ bytes\) are free\. The other copies may be in use and were not removed\.$/
      )
      assert.deepStrictEqual(
        removed.map((copy) => [copy.commit, copy.partial]),
        [
          [used, true],
          [older, false],
          [old, false]
        ]
      )
      assert.deepStrictEqual(
        [old, older, used, fresh].map((of) => existsSync(copyPath(of))),
        [false, false, true, true]
      )
      assert.isFalse(existsSync(left))
    }).pipe(Effect.scoped)
  )

  it.live("does not replace copies that were used after the report of the copies in use", () =>
    Effect.gen(function* () {
      const stage = yield* scene
      const [other = commit] = rest
      yield* copyUsed(stage, other, hour)
      yield* Effect.promise(async () => {
        await mkdir(join(stage.from, repo, commit), { recursive: true })
        const file = { path: weights, size: 2 ** 43, blob_id: "", sha256: "0".repeat(64) }
        await writeFile(join(stage.from, repo, commit, weights), "")
        await truncate(join(stage.from, repo, commit, weights), file.size)
        await writeFile(join(stage.from, repo, commit, manifestName), manifestOf(repo, commit, [file]))
        stage.listed.set(commit, [file])
      })
      yield* Effect.flip(stage.copy(commit, { inUse: { at: Date.now() - 2 * hour, commits: [] } }))
      assert.isTrue(existsSync(stage.there(other)))
      yield* Effect.flip(stage.copy(commit, { inUse: { at: Date.now(), commits: [] } }))
      assert.isFalse(existsSync(stage.there(other)))
    }).pipe(Effect.scoped)
  )

  it.live("resumes after a kill without copying verified files again", () =>
    Effect.gen(function* () {
      const { copy, from, listed, store, there: copyPath, to } = yield* scene
      const parts = Object.fromEntries(Array.from({ length: 24 }, (_, part) => [`part-${part}.safetensors`, randomBytes(4_000_000)]))
      yield* Effect.promise(() => store(commit, parts))
      const total = 24 * 4_000_000
      const order = { from, to, repo, commit, manifest: manifestSha256(listed.get(commit) ?? []), dieAt: total / 2 }
      const child = spawn(process.execPath, [fileURLToPath(new URL("../copyProcess.ts", import.meta.url)), JSON.stringify(order)], {
        stdio: ["ignore", "ignore", "inherit"]
      })
      const signal = yield* Effect.promise(() => new Promise((resolve) => child.once("close", (_, name) => resolve(name))))
      assert.strictEqual(signal, "SIGKILL")
      assert.isFalse(existsSync(dirname(copyPath())))
      const { copied } = yield* copy()
      assert.isAbove(copied, 0)
      assert.isBelow(copied, total)
      for (const [path, bytes] of Object.entries(parts)) assert.isTrue(bytes.equals(yield* Effect.promise(() => readFile(copyPath(commit, path)))))
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(join(to, repo))), [commit])
      yield* Effect.promise(() => access(copyPath(commit, manifestName)))
    }).pipe(Effect.scoped)
  )
})
