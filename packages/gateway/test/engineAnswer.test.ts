import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EngineAnswer } from "../src/engine/EngineAnswer.ts"
import { RequestAbort } from "../src/RequestAbort.ts"

const afterTicks = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

const heard = () => {
  const events: Array<string> = []
  const answer = new EngineAnswer(200, { pause: () => events.push("pause"), resume: () => events.push("resume"), hangUp: () => events.push("hang up") })
  answer
    .on("data", (bytes) => events.push(bytes.toString()))
    .on("end", () => events.push("end"))
    .on("close", () => events.push("close"))
  return { answer, events }
}

describe("an engine's answer", () => {
  it.effect("that arrived before any listener is emitted completely and in order", () =>
    Effect.gen(function* () {
      const { answer, events } = heard()
      answer.push(Buffer.from("a"))
      answer.push(Buffer.from("b"))
      answer.finish()
      yield* afterTicks
      assert.deepStrictEqual(events, [])
      answer.resume()
      yield* afterTicks
      assert.deepStrictEqual(events, ["a", "b", "end", "close"])
      assert.isTrue(answer.complete && answer.destroyed)
    })
  )

  it.effect("pauses with its reader, and buffers a limited part of the connection's data", () =>
    Effect.gen(function* () {
      const { answer, events } = heard()
      answer.resume()
      answer.once("data", () => answer.pause())
      yield* afterTicks
      answer.push(Buffer.from("a"))
      answer.push(Buffer.from("b"))
      yield* afterTicks
      assert.deepStrictEqual(events, ["resume", "a", "pause"])
      answer.push(Buffer.alloc(65_536, "x"))
      assert.deepStrictEqual(events.splice(0), ["resume", "a", "pause", "pause"])
      answer.resume()
      answer.finish()
      yield* afterTicks
      assert.deepStrictEqual(events, ["resume", "b", "x".repeat(65_536), "end", "close"])
    })
  )

  it.effect("that broke off emits only close", () =>
    Effect.gen(function* () {
      const { answer, events } = heard()
      answer.push(Buffer.from("a"))
      answer.fail()
      answer.resume()
      yield* afterTicks
      assert.deepStrictEqual(events, ["close"])
      assert.isFalse(answer.complete)
    })
  )

  it.effect("that is destroyed closes the connection only if it is not complete", () =>
    Effect.gen(function* () {
      for (const complete of [false, true]) {
        const { answer, events } = heard()
        answer.push(Buffer.from("a"))
        if (complete) answer.finish()
        answer.destroy()
        assert.deepStrictEqual(events, complete ? [] : ["hang up"], "the server hangs up several events later")
        yield* afterTicks
        assert.strictEqual(events.at(-1), "close")
        assert.notInclude(events, "a")
      }
    })
  )
})

describe("the abort signal of a request", () => {
  it("notifies each remaining listener once, with the first reason", () => {
    const reasons: Array<string> = []
    const requestAbort = new RequestAbort()
    const second = () => reasons.push("second")
    requestAbort.addEventListener("abort", () => {
      reasons.push("first")
      requestAbort.removeEventListener("abort", second)
    })
    requestAbort.addEventListener("abort", second)
    requestAbort.addEventListener("abort", () => reasons.push("third"))
    assert.isNull(requestAbort.reason)
    requestAbort.abort("stopped")
    requestAbort.abort("gone")
    assert.deepStrictEqual([reasons, requestAbort.reason, requestAbort.aborted], [["first", "third"], "stopped", true])
  })
})
