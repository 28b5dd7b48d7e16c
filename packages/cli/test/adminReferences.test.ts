import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Env, noTrace, parse, seatrial } from "./runCommand.ts"

const reference = {
  sequences: [{ ids: [1, 2, 3], logprobs: [-0.5, -1.25] }],
  continuations: [{ prompt: [1], ids: [2, 3] }],
  transformers: "5.19.0",
  torch: "2.13.0"
}
const exported = (change: object = {}) => ({
  format: 1,
  references: [{ repo: "acme/tiny", commit: "a".repeat(40), texts_version: 1, reference: { ...reference, ...change } }]
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
        assert.match((yield* references("list")).out, /acme\/tiny +a{40} +1 +imported/u)
      }).pipe(Effect.scoped),
    120_000
  )

  const invalid = [
    ["no JSON", "references"],
    ["another format", JSON.stringify({ ...exported(), format: 2 })],
    ["a log-probability above 0", JSON.stringify(exported({ sequences: [{ ids: [1, 2], logprobs: [0.5] }] }))],
    ["a token without a log-probability", JSON.stringify(exported({ sequences: [{ ids: [1, 2, 3], logprobs: [-1] }] }))],
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
