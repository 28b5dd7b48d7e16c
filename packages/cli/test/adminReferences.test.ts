import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { referenceVersion } from "@seatrial/trial"
import { Effect, Redacted } from "effect"
import { Env, noTrace, parse, seatrial } from "./runCommand.ts"

const reference = {
  sequences: [{ ids: [1, 2, 3], logprobs: [-0.5, -1.25] }],
  continuations: [{ prompt: [1], ids: [2, 3] }],
  transformers: "5.19.0",
  torch: "2.13.0"
}
const exported = (change: object = {}) => ({
  format: 1,
  references: [{ repo: "acme/tiny", commit: "a".repeat(40), texts_version: referenceVersion, reference: { ...reference, ...change } }]
})

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-references-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

layer(Env.layer, { excludeTestServices: true, timeout: 60_000 })("seatrial admin references", (it) => {
  it.effect(
    "imports what it exports, once, and refuses another result for the same commit",
    () =>
      Effect.gen(function* () {
        const env = yield* Env
        const file = join(yield* folder, "references.json")
        const references = (verb: string, ...args: ReadonlyArray<string>) => seatrial(["admin", "references", verb, ...args], env)
        const add = (content: unknown) => {
          writeFileSync(file, JSON.stringify(content))
          return references("import", file, "--json")
        }
        assert.deepStrictEqual(parse((yield* add(exported())).out), { added: 1, known: 0 })
        const printed = yield* references("export")
        assert.deepStrictEqual(parse(printed.out), exported())
        assert.deepStrictEqual(parse((yield* references("export", "--repo", "acme/other")).out), { format: 1, references: [] })
        assert.deepStrictEqual(parse((yield* add(parse(printed.out))).out), { added: 0, known: 1 })
        const refused = yield* add(exported({ sequences: [{ ids: [1, 2, 3], logprobs: [-0.5, -2] }] }))
        assert.strictEqual(refused.code, 1)
        assert.match(refused.err, /acme\/tiny@a{40} has another reference/u)
        noTrace(refused)
        assert.match((yield* references("list")).out, new RegExp(`acme/tiny +a{40} +${referenceVersion} +imported`, "u"))
      }).pipe(Effect.scoped),
    120_000
  )

  const invalid = [
    ["no JSON", "references"],
    ["another format", JSON.stringify({ ...exported(), format: 2 })],
    ["a log-probability above 0", JSON.stringify(exported({ sequences: [{ ids: [1, 2], logprobs: [0.5] }] }))],
    ["a token without a log-probability", JSON.stringify(exported({ sequences: [{ ids: [1, 2, 3], logprobs: [-1] }] }))],
    ["drawn sequences alone", JSON.stringify(exported({ drawn: 1 }))],
    ["a commit that is a branch", JSON.stringify(exported()).replace("a".repeat(40), "main")]
  ] as const
  for (const [name, content] of invalid) {
    it.effect(`refuses to import ${name}`, () =>
      Effect.gen(function* () {
        const file = join(yield* folder, "references.json")
        writeFileSync(file, content)
        const refused = yield* seatrial(["admin", "references", "import", file], yield* Env)
        assert.strictEqual(refused.code, 2)
        assert.match(refused.err, /has no references in the format/u)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("forgets why a commit has no reference, and says if there is nothing to forget", () =>
    Effect.gen(function* () {
      const env = yield* Env
      const database = PgClient.layer({ url: Redacted.make(env.DATABASE_URL ?? ""), maxConnections: 1 })
      const note = (commit: string) =>
        Effect.flatMap(
          PgClient.PgClient,
          (sql) =>
            sql`INSERT INTO missing_references (hf_repo, hf_revision, texts_version, made_from, code) VALUES ('acme/tiny', ${commit}, 1, 'i', 'timed_out')`
        ).pipe(Effect.provide(database))
      const forget = (commit: string) => seatrial(["admin", "references", "forget", "--repo", "acme/tiny", "--commit", commit, "--json"], env)
      const [missing, known] = ["c".repeat(40), "d".repeat(40)]
      yield* note(missing)
      assert.deepStrictEqual(parse((yield* forget(missing)).out), { repo: "acme/tiny", commit: missing, forgotten: "timed_out" })
      const again = yield* forget(missing)
      assert.deepStrictEqual([again.code, again.out], [1, ""])
      assert.match(again.err, /No cause is stored for acme\/tiny@c{40}\./u)

      yield* note(known)
      const file = join(yield* folder, "references.json")
      writeFileSync(file, JSON.stringify({ format: 1, references: [{ ...exported().references[0], commit: known }] }))
      assert.strictEqual((yield* seatrial(["admin", "references", "import", file], env)).code, 0)
      const refused = yield* forget(known)
      assert.strictEqual(refused.code, 1)
      assert.match(refused.err, /has a reference\. A reference never changes/u)
      assert.notStrictEqual((yield* forget("main")).code, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("names the file of the model that it cannot read", () =>
    Effect.gen(function* () {
      const args = ["--repo", "acme/tiny", "--commit", "b".repeat(40), "--folder", yield* folder]
      const failed = yield* seatrial(["admin", "references", "compute", ...args], yield* Env)
      assert.strictEqual(failed.code, 1)
      assert.match(failed.err, /config\.json cannot be read/u)
      noTrace(failed)
    }).pipe(Effect.scoped)
  )
})
