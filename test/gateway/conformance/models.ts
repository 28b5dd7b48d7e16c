import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { asks, at, languages, type Promises } from "./Stage.ts"

export const promisesOfModels = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`34 ${language}: models are listed with their capabilities, and one is retrieved by its name`, () =>
      Effect.gen(function* () {
        const { error, value } = yield* asks(language, { call: "models.list", how: "list" })
        assert.isNull(error)
        const ids = Array.isArray(value) ? value.map((model) => at(model, "id")) : []
        assert.includeMembers(ids, ["acme/able", "acme/plain"])
        const one = yield* asks(language, { call: "models.retrieve", words: ["acme/able"] })
        assert.deepStrictEqual([at(one.value, "id"), at(one.value, "supports_tool_calls")], ["acme/able", true])
        const none = yield* asks(language, { call: "models.retrieve", words: ["other/able"] })
        assert.deepInclude(none.error, { kind: "NotFoundError", status: 404 })
        const vendor = yield* asks(language, { client: "anthropic", call: "models.list", how: "list" })
        assert.isNull(vendor.error)
        assert.includeMembers(Array.isArray(vendor.value) ? vendor.value.map((model) => at(model, "id")) : [], ["acme/able"])
      })
    )
  }
}
