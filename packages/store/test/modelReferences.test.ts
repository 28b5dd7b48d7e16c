import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Commit, type ModelReference } from "@seatrial/domain"
import { Effect, Exit, Layer, Option } from "effect"
import { Administrator, ModelReferences } from "../src/index.ts"
import { findReferenceState, noteMissingReference } from "../src/ModelReferences.ts"
import { layerRole, layerStore } from "./stage.ts"

const layerAs = (role: "admin" | "operator" | "server") => ModelReferences.layerSql.pipe(Layer.provide(layerRole(role)))

const key = (digit: string) => ({ repo: "acme/tiny", commit: Commit.make(digit.repeat(40)), textsVersion: 1 })

const reference: ModelReference = {
  sequences: [{ ids: [1, 2, 3], logprobs: [-0.5, -1.25] }],
  continuations: [{ prompt: [1], ids: [2, 3] }],
  transformers: "5.19.0",
  torch: "2.13.0"
}
const other: ModelReference = { ...reference, sequences: [{ ids: [1, 2, 3], logprobs: [-0.5, -1.2501] }] }

layer(layerStore, { excludeTestServices: true })("references of commits", (it) => {
  it.effect("are found by repository, commit and version of the texts", () =>
    Effect.gen(function* () {
      const references = yield* ModelReferences
      assert.isTrue(yield* references.add({ ...key("a"), source: "computed", reference }))
      assert.deepStrictEqual(yield* references.find(key("a")), Option.some(reference))
      for (const unknown of [key("b"), { ...key("a"), repo: "acme/other" }, { ...key("a"), textsVersion: 2 }])
        assert.isTrue(Option.isNone(yield* references.find(unknown)))
      const [listed] = yield* references.list
      assert.deepInclude(listed, { ...key("a"), source: "computed", addedBy: "ann", transformers: "5.19.0", torch: "2.13.0" })
    }).pipe(Effect.provide(layerAs("admin")), Effect.provideService(Administrator, "ann"))
  )

  it.effect("never change: another result for a commit is refused, the same one of other packages is known", () =>
    Effect.gen(function* () {
      const references = yield* ModelReferences
      const add = (added: ModelReference) => references.add({ ...key("c"), source: "imported", reference: added })
      assert.isTrue(yield* add(reference))
      assert.isFalse(yield* add({ ...reference, transformers: "5.20.0" }))
      assert.deepInclude(yield* Effect.flip(add(other)), { _tag: "DifferentReference", ...key("c") })
      assert.deepStrictEqual(yield* references.find(key("c")), Option.some(reference))
    }).pipe(Effect.provide(layerAs("admin")))
  )

  it.effect("are read and added by the operator, which cannot change them, and not read by the server", () =>
    Effect.gen(function* () {
      const find = Effect.flatMap(ModelReferences, (references) => references.find(key("a")))
      const add = Effect.flatMap(ModelReferences, (references) => references.add({ ...key("d"), source: "operator", reference }))
      assert.isTrue(yield* add.pipe(Effect.provide(layerAs("operator"))))
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(find.pipe(Effect.provide(layerAs("operator"))))))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(find.pipe(Effect.provide(layerAs("server"))))))
      const written = Effect.flatMap(PgClient.PgClient, (sql) =>
        Effect.all([
          Effect.exit(sql`UPDATE model_references SET reference = '{}' WHERE hf_revision = ${key("d").commit}`),
          Effect.exit(sql`DELETE FROM model_references WHERE hf_revision = ${key("d").commit}`)
        ])
      )
      for (const exit of yield* written.pipe(Effect.provide(layerRole("operator")))) assert.isTrue(Exit.isFailure(exit))
    })
  )

  it.effect("that are missing have a code, which counts for the same kind of attempt only and until there is a reference", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const [note, state] = [noteMissingReference(sql), findReferenceState(sql)]
      const attempt = { ...key("e"), madeFrom: "image-1" }
      assert.deepStrictEqual(yield* state(attempt), { isKnown: false, missing: null })
      assert.isTrue(yield* note(attempt, "unknown_architecture"))
      assert.deepStrictEqual(yield* state(attempt), { isKnown: false, missing: "unknown_architecture" })
      assert.deepStrictEqual(yield* state({ ...attempt, madeFrom: "image-2" }), { isKnown: false, missing: null })
      assert.isFalse(yield* note(attempt, "out_of_memory"))
      assert.deepStrictEqual(yield* state(attempt), { isKnown: false, missing: "out_of_memory" })
      assert.isTrue(Exit.isFailure(yield* Effect.exit(note(attempt, "Traceback (most recent call last)"))))
    }).pipe(Effect.provide(layerRole("operator")))
  )

  it.effect("that are missing are listed for administrators until they are added", () =>
    Effect.gen(function* () {
      const references = yield* ModelReferences
      const missing = Effect.map(references.listMissing, (rows) => rows.filter(({ commit }) => commit === key("e").commit))
      assert.deepInclude((yield* missing)[0], { ...key("e"), code: "out_of_memory" })
      assert.isTrue(yield* references.add({ ...key("e"), source: "imported", reference }))
      assert.deepStrictEqual(yield* missing, [])
    }).pipe(Effect.provide(layerAs("admin")))
  )

  it.effect("that are missing are forgotten for one commit, whatever they were made from, and only by administrators", () =>
    Effect.gen(function* () {
      const note = Effect.flatMap(PgClient.PgClient, (sql) =>
        Effect.all([
          noteMissingReference(sql)({ ...key("6"), madeFrom: "image-1" }, "timed_out"),
          noteMissingReference(sql)({ ...key("6"), madeFrom: "image-2" }, "out_of_memory"),
          noteMissingReference(sql)({ ...key("6"), madeFrom: "image-3" }, "timed_out"),
          noteMissingReference(sql)({ ...key("7"), madeFrom: "image-1" }, "timed_out")
        ])
      )
      yield* note.pipe(Effect.provide(layerRole("operator")))
      const { commit, repo } = key("6")
      const forget = Effect.flatMap(ModelReferences, (references) => references.forgetMissing({ repo, commit }))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(forget.pipe(Effect.provide(layerAs("operator"))))))
      assert.deepStrictEqual(yield* forget.pipe(Effect.provide(layerAs("admin"))), ["out_of_memory", "timed_out"])
      assert.deepStrictEqual(yield* forget.pipe(Effect.provide(layerAs("admin"))), [])
      const state = (digit: string) => Effect.flatMap(PgClient.PgClient, (sql) => findReferenceState(sql)({ ...key(digit), madeFrom: "image-1" }))
      const states = yield* Effect.all([state("6"), state("7")]).pipe(Effect.provide(layerRole("operator")))
      assert.deepStrictEqual(
        states.map(({ missing }) => missing),
        [null, "timed_out"]
      )
    })
  )

  it.effect("are kept only for whole commits", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const insert = sql`INSERT INTO model_references (hf_repo, hf_revision, texts_version, source, reference) VALUES ('acme/tiny', 'main', 1, 'computed', '{}')`
      assert.isTrue(Exit.isFailure(yield* Effect.exit(insert)))
    }).pipe(Effect.provide(layerRole("admin")))
  )
})
