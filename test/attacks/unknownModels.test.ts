import { assert } from "@effect/vitest"
import { copyModel, makeCaller, makeServing } from "@seatrial/store/testing"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { sendRequest } from "./sendRequest.ts"

/** Another organization serves 2,000 models more. */
const prepare = () =>
  Effect.gen(function* () {
    const { caller } = yield* makeCaller("many")
    const { modelId, revisionId } = yield* makeServing(caller, "k", "first")
    yield* copyModel({ orgId: caller.orgId, modelId, revisionId }, "copy", 2_000)
  })

const chat = (model: string) => ({ model, messages: [{ role: "user", content: "a" }] })

for (const [name, modelOf] of [
  ["one name", () => "no/model"],
  ["ever other names", (index: number) => `no/model-${index}`]
] as const) {
  let index = 0
  attack({
    name: `a loop on ${name} that does not exist slows down nobody else if there are 2,001 models`,
    prepare,
    run: (stage) =>
      Effect.forEach(
        Array.from({ length: 32 }),
        () =>
          Effect.forever(
            Effect.andThen(
              Effect.suspend(() => sendRequest(stage, { body: chat(modelOf(index++)) })),
              Effect.sleep("20 millis")
            )
          ),
        { concurrency: "unbounded", discard: true }
      ),
    verify: ({ answers }) => Effect.sync(() => assert.includeMembers(["404", "429"], [...answers.keys()]))
  })
}
