import { assert, it } from "@effect/vitest"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Effect, Option } from "effect"
import { withHub } from "./withHub.ts"

const names = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "model.none.weight"]

it.effect("the first values of a commit's tensors are read from any of its files in a few short requests", () =>
  withHub((hub, asked) =>
    Effect.gen(function* () {
      const read = Effect.fnUntraced(function* (repo: string) {
        const { commit, files } = yield* hub.inspect({ repo }, Option.none(), "few")
        const before = asked.length
        const tensors = yield* hub.readTensors({ repo, commit, files, names, values: 100, token: Option.none() })
        return { tensors, requests: asked.length - before }
      })

      const { requests, tensors } = yield* read("seatrial/tiny-chat")
      assert.deepStrictEqual(
        tensors.map(({ bytes, dtype, name, shape }) => [name, dtype, shape, bytes.length]),
        [
          ["model.embed_tokens.weight", "BF16", [512, 128], 200],
          ["model.norm.weight", "BF16", [128], 200],
          ["lm_head.weight", "BF16", [512, 128], 200]
        ]
      )
      assert.isAtMost(requests, 4)
      const file = Buffer.from(trainedFiles("tiny-chat").get("model.safetensors") ?? [])
      for (const { bytes, name } of tensors) assert.isAbove(file.indexOf(bytes), 8, name)

      // Sixty shards, two of which contain the tensors.
      const sharded = yield* read("seatrial/giant-70b")
      assert.sameMembers(
        sharded.tensors.map(({ name }) => name),
        names.slice(0, 3)
      )
      assert.isAtMost(sharded.requests, 8)
    })
  )
)

it.effect("an unavailable hub is reported as such", () =>
  withHub((hub) =>
    Effect.gen(function* () {
      const { commit, files } = yield* hub.inspect({ repo: "seatrial/tiny-chat" }, Option.none(), "few")
      const gone = files.map((file) => (file.path === "model.safetensors" ? { ...file, path: "other.safetensors" } : file))
      const error = yield* Effect.flip(hub.readTensors({ repo: "seatrial/tiny-chat", commit, files: gone, names, values: 100, token: Option.none() }))
      assert.strictEqual(error._tag, "HubUnavailable")
    })
  )
)
