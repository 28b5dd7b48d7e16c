import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Commit, type ModelReference } from "@seatrial/domain"
import { Effect, Exit, Layer, Option } from "effect"
import { Administrator, ModelReferences } from "../src/index.ts"
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

  it.effect("are read by the operator, which cannot write them, and not by the server", () =>
    Effect.gen(function* () {
      const add = Effect.flatMap(ModelReferences, (references) => references.add({ ...key("d"), source: "computed", reference }))
      const find = Effect.flatMap(ModelReferences, (references) => references.find(key("a")))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(add.pipe(Effect.provide(layerAs("operator"))))))
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(find.pipe(Effect.provide(layerAs("operator"))))))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(find.pipe(Effect.provide(layerAs("server"))))))
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
