import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { sendRequest } from "./sendRequest.ts"

const mebibyte = 1024 * 1024

/** A body of so many bytes whose member `a` is a list of `element`, with `last` behind it. */
const listOf = (element: string, last: string, bytes: number) => {
  const start = '{"model":"tiny","messages":[{"role":"user","content":"hi"}],"a":['
  const count = Math.floor((bytes - start.length - last.length - 2) / (element.length + 1))
  return Buffer.from(`${start}${`${element},`.repeat(count)}${last}]}`)
}

const sendAll = (body: Buffer, connections: number) => (stage: Parameters<Parameters<typeof attack>[0]["run"]>[0]) =>
  Effect.forEach(Array.from({ length: connections }), () => Effect.forever(sendRequest(stage, { body })), { concurrency: "unbounded", discard: true })

const onlyStatus = (status: string) => (answers: ReadonlyMap<string, number>) => Effect.sync(() => assert.deepStrictEqual([...answers.keys()], [status]))

attack({
  name: "bodies of 16 MiB with five million objects and a number with a three-digit exponent are refused, and crash no gateway",
  run: sendAll(listOf("{}", "1e100", 16 * mebibyte), 2),
  verify: ({ answers }) => onlyStatus("400")(answers)
})

attack({
  name: "bodies of 1 MiB with a long number among many values delay neither requests nor health endpoints",
  // Slow with a reviver: each value of the body is a call of it.
  run: sendAll(listOf("1,2,3,4", "12345678901234567890", mebibyte), 4),
  verify: ({ answers }) => onlyStatus("400")(answers)
})

attack({
  name: "bodies just below 64 KiB, which the gateway parses itself, delay neither requests nor health endpoints",
  run: (stage) => {
    const names = Array.from({ length: 4_000 }, (_, index) => `{"${index.toString(36)}":1}`).join(",")
    const body = `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"a":[${names},12345678901234567890]}`
    const sendOne = Effect.andThen(sendRequest(stage, { body }), Effect.sleep("50 millis"))
    return Effect.forEach(Array.from({ length: 4 }), () => Effect.forever(sendOne), { concurrency: "unbounded", discard: true })
  },
  verify: ({ answers }) => onlyStatus("400")(answers)
})
