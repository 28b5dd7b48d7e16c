import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { pathForms } from "../../src/suite/pathForms.ts"
import { subjectAt } from "./subject.ts"

const row = pathForms.find(({ name }) => name === "messages_json_schema")

/** What the row says of an engine that answers so, whole and streamed. */
const judged = Effect.fnUntraced(function* (content: string) {
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const delta = JSON.stringify({ type: "content_block_delta", delta: { text: content } })
  const answer = JSON.stringify({ content: [{ type: "text", text: content }], stop_reason: "max_tokens", usage: { input_tokens: 5, output_tokens: 9 } })
  const post = (_: string, body: string) => Effect.succeed({ status: 200, text: body.includes('"stream":true') ? `data: ${delta}\n\n` : answer })
  return yield* row?.run({ ...subject, client: { ...subject.client, post } }).pipe(Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(detail))) ??
    Effect.succeed("no row")
}, Effect.provide(FetchHttpClient.layer))

describe("a schema on another path than the chat", () => {
  const incomplete = "an object does not match its schema, or is incomplete"
  const cases = [
    ["an object of the schema", '{"colour": "red"}', "17 and 17 characters"],
    ["an object whose token limit white space filled, which a grammar allows", `{"colour"${" ".repeat(40)}`, "49 and 49 characters"],
    ["an object that is cut elsewhere", '{"colour": "re', incomplete],
    ["another object before white space", `{"color": "red"}${" ".repeat(40)}`, incomplete],
    ["another object", '{"color": "red"}', incomplete],
    ["no object", `Roses are red.${" ".repeat(40)}`, "an answer does not match its form"]
  ] as const
  for (const [what, content, said] of cases)
    it.effect(`judges ${what}: ${said}`, () => Effect.map(judged(content), (detail) => assert.strictEqual(detail, said)))
})
