import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { withHub } from "./withHub.ts"

const modules = ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]

describe("the sample adapters", () => {
  it.live("are pinned with the sample model's newest commit", () =>
    withHub((hub) =>
      Effect.gen(function* () {
        const base = yield* hub.inspect({ repo: "seatrial/tiny-chat" }, Option.none(), "few")
        for (const [repo, rank] of [
          ["seatrial/tiny-chat-adapter", 8],
          ["seatrial/tiny-chat-greeter", 2]
        ] as const) {
          const { adapter } = yield* hub.inspect({ repo }, Option.none())
          assert.deepInclude(adapter, { rank, targets: modules, template: "base", rslora: false })
          assert.strictEqual(adapter?.base.commit, base.commit)
          assert.match(adapter?.content_hash ?? "", /^[0-9a-f]{64}$/)
        }
      })
    )
  )
})
