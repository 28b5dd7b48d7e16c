import { createHash } from "node:crypto"
import { access, mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Commit } from "@seatrial/domain"
import { Clock, ConfigProvider, Effect, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { cleanStore, leastAge } from "../src/fetch/cleanStore.ts"
import { fetchFiles } from "../src/fetch/fetchFiles.ts"
import { manifestName, manifestOf } from "../src/fetch/Manifest.ts"
import { areAsRecorded, recordName } from "../src/fetch/VerifiedRecord.ts"
import { HubSettings } from "../src/HubSettings.ts"

const repo = "test/model"
const commits = ["a", "b", "c", "d"].map((digit) => Commit.make(digit.repeat(40)))
const hour = 3_600_000
const day = 24 * hour

const scene = Effect.gen(function* () {
  const root = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-clean-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
  )
  const settings = yield* HubSettings.parse(ConfigProvider.fromUnknown({}))
  const needed = new Set<Commit>()
  const directory = (commit: Commit) => join(root, repo, commit)
  // Without files, so that no hub is needed.
  const fetch = (commit: Commit) => fetchFiles(settings)({ repo, commit, files: [], directory: directory(commit), token: Option.none() })
  /** Commits that downloads have found and that were not forgotten since. */
  const known = new Set<string>()
  return {
    needed,
    known,
    directory,
    fetch,
    /** Like the operator: a known commit is not checked in the store. */
    deploy: Effect.fnUntraced(function* (commit: Commit) {
      needed.add(commit)
      yield* Effect.yieldNow
      if (known.has(commit)) return
      yield* fetch(commit)
      known.add(commit)
    }),
    clean: (age: number, now: Effect.Effect<number> = Clock.currentTimeMillis) =>
      cleanStore({
        root,
        now,
        needed: Effect.sync(() => [...needed].map((commit) => ({ repo, commit }))),
        age,
        dryRun: false,
        forget: ({ commit }) => Effect.sync(() => void known.delete(commit)),
        verifyAge: null,
        onVerified: () => Effect.void,
        onRemoved: () => Effect.void
      }),
    isThere: (commit: Commit) =>
      Effect.promise(() =>
        access(join(directory(commit), manifestName)).then(
          () => true,
          () => false
        )
      )
  }
})

const Step = Schema.Union([
  Schema.Struct({ kind: Schema.Literals(["deploy", "end"]), commit: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })) }),
  Schema.Struct({ kind: Schema.Literals(["pass"]), hours: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 })) }),
  Schema.Struct({ kind: Schema.Literals(["clean"]) })
])

describe("clean-up of the weights store", () => {
  it.effect.prop(
    "removes commits that were unused for the age, nothing sooner, and never a needed commit, in any sequence",
    [Schema.Array(Step).check(Schema.isMinLength(10), Schema.isMaxLength(40))],
    ([steps]) =>
      Effect.gen(function* () {
        const { clean, deploy, isThere, known, needed } = yield* scene
        // When each commit was last fetched or observed as needed.
        const lastUses = new Map<Commit, number>()
        const age = 2 * day
        for (const step of steps) {
          const now = yield* Clock.currentTimeMillis
          if (step.kind === "pass") yield* TestClock.adjust(step.hours * hour)
          else if (step.kind === "clean") {
            yield* clean(age)
            for (const commit of needed) lastUses.set(commit, now)
            for (const [commit, at] of lastUses) {
              assert.strictEqual(yield* isThere(commit), now - at < age)
              if (now - at >= age) lastUses.delete(commit)
            }
          } else {
            const commit = commits[step.commit] ?? Commit.make("e".repeat(40))
            if (step.kind === "end") needed.delete(commit)
            else {
              const wasKnown = known.has(commit)
              yield* deploy(commit)
              // A use within the last hour is not recorded again, and neither is a use without a check.
              if (!wasKnown && now - (lastUses.get(commit) ?? -hour) >= hour) lastUses.set(commit, now)
            }
          }
          for (const commit of needed) assert.isTrue(yield* isThere(commit))
        }
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 40 } }
  )

  it.effect("removes nothing early if its machine's clock is wrong: the database's clock decides", () =>
    Effect.gen(function* () {
      const { clean, fetch, isThere } = yield* scene
      const [commit = Commit.make("f".repeat(40))] = commits
      yield* TestClock.setTime(100 * day)
      yield* fetch(commit)
      yield* TestClock.setTime(300 * day)
      yield* clean(leastAge, Effect.succeed(100 * day + hour))
      assert.isTrue(yield* isThere(commit))
      yield* clean(leastAge, Effect.succeed(102 * day))
      assert.isFalse(yield* isThere(commit))
    }).pipe(Effect.scoped)
  )

  it.live("keeps a commit that a download has found or downloaded, in any interleaving", () =>
    Effect.gen(function* () {
      const { clean, deploy, directory, fetch, isThere, needed } = yield* scene
      const [commit = Commit.make("f".repeat(40))] = commits
      for (let round = 0; round < 6; round++) {
        needed.clear()
        yield* fetch(commit)
        const old = (Date.now() - 2 * leastAge) / 1_000
        yield* Effect.promise(() => utimes(join(directory(commit), manifestName), old, old))
        const begin = deploy(commit)
        const cleanUps = Effect.all([clean(leastAge), clean(leastAge)], { concurrency: "unbounded" })
        yield* Effect.all(round % 2 === 0 ? [cleanUps, begin] : [begin, cleanUps], { concurrency: "unbounded" })
        assert.isTrue(yield* isThere(commit))
      }
      needed.clear()
      const old = (Date.now() - 2 * leastAge) / 1_000
      yield* Effect.promise(() => utimes(join(directory(commit), manifestName), old, old))
      yield* clean(leastAge)
      assert.isFalse(yield* isThere(commit))
    }).pipe(Effect.scoped)
  )

  it.live("verifies remaining commits again byte for byte when due, and has damaged ones checked before their next use", () =>
    Effect.gen(function* () {
      const { directory } = yield* scene
      const [commit = Commit.make("f".repeat(40))] = commits
      const folder = directory(commit)
      const bytes = Buffer.from("weights")
      const file = { path: "model.safetensors", size: bytes.length, blob_id: "0".repeat(40), sha256: createHash("sha256").update(bytes).digest("hex") }
      yield* Effect.promise(async () => {
        await mkdir(folder, { recursive: true })
        await writeFile(join(folder, file.path), bytes)
        await writeFile(join(folder, manifestName), manifestOf(repo, commit, [file]))
      })
      const forgotten: Array<string> = []
      const reported: Array<string | null> = []
      const clean = (verifyAge: number | null) =>
        cleanStore({
          root: join(folder, "../../.."),
          now: Clock.currentTimeMillis,
          needed: Effect.succeed([{ repo, commit }]),
          age: leastAge,
          dryRun: false,
          forget: (stored) => Effect.sync(() => forgotten.push(stored.commit)),
          verifyAge,
          onVerified: ({ wrong }) => Effect.sync(() => reported.push(wrong)),
          onRemoved: () => Effect.void
        })
      yield* clean(null)
      assert.deepStrictEqual(reported, [])
      // Without a recorded verification first, then with a recent one.
      yield* clean(day)
      yield* clean(day)
      assert.deepStrictEqual(reported, [null])
      assert.isTrue(yield* areAsRecorded(folder, [file]))
      const record = join(folder, recordName)
      yield* Effect.promise(async () => {
        await writeFile(join(folder, file.path), "Weights")
        const old = (Date.now() - 2 * day) / 1_000
        await utimes(record, old, old)
      })
      yield* clean(day)
      assert.deepStrictEqual([reported, forgotten], [[null, file.path], [commit]])
      assert.isFalse(yield* areAsRecorded(folder, [file]))
    }).pipe(Effect.scoped)
  )
})
