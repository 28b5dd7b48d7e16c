import { assert, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { ask, requestIdOf } from "../e2e/chat.ts"
import { alwaysHolds } from "./alwaysHolds.ts"
import { openLane } from "./Lane.ts"
import { serveFirst } from "./serveFirst.ts"

it.live("each violated invariant is reported", () =>
  Effect.gen(function* () {
    const lane = yield* openLane
    const { model, run } = yield* serveFirst(lane)
    const requestId = requestIdOf(yield* ask(lane.caller, model))
    const answers = [{ id: requestId }]
    const change = (statement: string) => lane.select(Schema.Array(Schema.Unknown), statement)
    const holds = (seen = lane, given: ReadonlyArray<{ readonly id: string }> = answers) =>
      Effect.map(Effect.exit(alwaysHolds(seen, [run], given)), Exit.isSuccess)
    /** Whether the invariant holds before a statement, after it, and after the statement that reverts it. */
    const meanwhile = Effect.fnUntraced(function* (what: string, statement: string, back: string) {
      assert.isTrue(yield* holds(), `before: ${what}`)
      yield* change(statement)
      assert.isFalse(yield* holds(), what)
      yield* change(back)
    })
    const end = (state: string) => `UPDATE requests SET state = '${state}' WHERE id = '${requestId}'`

    yield* meanwhile(
      "a finished run has changed",
      `UPDATE deployment_phases SET reason = 'Another.' || reason WHERE deployment_id = '${run}' AND seq = 2`,
      `UPDATE deployment_phases SET reason = substr(reason, 9) WHERE deployment_id = '${run}' AND seq = 2`
    )
    yield* meanwhile(
      "a prompt is stored",
      "UPDATE organizations SET name = 'What does a sea trial show?' WHERE slug = 'strangers'",
      "UPDATE organizations SET name = 'Strangers' WHERE slug = 'strangers'"
    )
    yield* meanwhile("an answered request was refused", end("refused"), end("completed"))
    yield* meanwhile(
      "the serving revision was not tried",
      "UPDATE revisions SET engine_version = 'another' WHERE status = 'active'",
      "UPDATE revisions SET engine_version = (SELECT min(engine_version) FROM receipts) WHERE status = 'active'"
    )
    assert.isTrue(yield* holds(), "after all")
    assert.isFalse(yield* holds({ ...lane, stranger: lane.caller }), "another organization sees a run")
    assert.isFalse(yield* holds(lane, [{ id: "req_never" }]), "an answer has no record")
    lane.say("INFO asked: What does a sea trial show?")
    assert.isFalse(yield* holds(), "the operator logs a prompt")
  }).pipe(Effect.scoped)
)
