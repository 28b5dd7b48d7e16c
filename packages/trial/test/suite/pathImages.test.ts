import { assert, describe, it } from "@effect/vitest"
import { type InferencePath, initialImageProfile, withdrawCapabilities } from "@seatrial/domain"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { digits } from "../../src/suite/imageInput.ts"
import { messagesCount } from "../../src/suite/messagesPath.ts"
import { pathImages } from "../../src/suite/pathImages.ts"
import { jpegOf, pngOf } from "../../src/suite/pictures.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import { serveFakeEngine } from "./fakeEngine.ts"
import { subjectAt } from "./subject.ts"

const endpoints: ReadonlyArray<InferencePath> = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"]
const bytesOf = (url: string) => url.slice(url.indexOf(",") + 1)
const png = bytesOf(pngOf(digits("4071")))
const jpeg = bytesOf(jpegOf(digits("8253")))

/** An engine that reads the digits of images of these kinds, and says something else of all others. */
const tried = Effect.fnUntraced(function* (sees: ReadonlyArray<"png" | "jpeg">) {
  const subject = yield* subjectAt("http://127.0.0.1:9")
  const post: typeof subject.client.post = (path, body) => {
    const text = sees.includes("png") && body.includes(png) ? "It shows 4071." : sees.includes("jpeg") && body.includes(jpeg) ? "8253" : "It shows nothing."
    const answer =
      path === "/v1/responses"
        ? { status: "completed", output: [{ type: "message", content: [{ text }] }], usage: { input_tokens: 9, output_tokens: 5 } }
        : { content: [{ type: "text", text }], stop_reason: "end_turn", usage: { input_tokens: 9, output_tokens: 5 } }
    return Effect.succeed({ status: 200, text: JSON.stringify(answer) })
  }
  const image_input = { ...initialImageProfile, processor_revision: "c".repeat(40) }
  const capabilities = { ...subject.capabilities, supports_image_input: true, image_input, supported_endpoints: endpoints }
  const { report } = yield* runSuite({ ...subject, capabilities, client: { ...subject.client, post } }, () => pathImages)
  return [report.checks.slice(0, -1).map(({ detail }) => detail), withdrawCapabilities(capabilities, report.withdrawn ?? []).supported_endpoints]
}, Effect.provide(FetchHttpClient.layer))

describe("images on other paths than the chat route", () => {
  it.effect("are read on both paths", () => Effect.map(tried(["png", "jpeg"]), (found) => assert.deepStrictEqual(found, [["2 images", "2 images"], endpoints])))

  for (const [sees, kind] of [
    [[], "PNG"],
    [["png"], "JPEG"]
  ] as const) {
    it.effect(`are withdrawn for a path that does not read a ${kind}`, () =>
      Effect.map(tried(sees), (found) => {
        const detail = `the digits of a ${kind} are not read`
        assert.deepStrictEqual(found, [[detail, detail], ["/v1/chat/completions"]])
      })
    )
  }

  for (const [what, ofImage, passes] of [
    ["pass if count_tokens includes their tokens", 64, true],
    ["fail the check of count_tokens if it leaves them out", 0, false]
  ] as const) {
    it.live(what, () =>
      Effect.gen(function* () {
        const { url } = yield* serveFakeEngine()
        const subject = yield* subjectAt(url)
        const post: typeof subject.client.post = (_path, body) => {
          const { messages, ...others } = JSON.parse(body)
          const texts = JSON.stringify(messages).replace(/\{"type":"image".*?\}\},?/g, "")
          const input_tokens = texts.length + JSON.stringify(others).length + (body.includes('"image"') ? ofImage : 0)
          return Effect.succeed({ status: 200, text: JSON.stringify({ input_tokens }) })
        }
        const capabilities = { ...subject.capabilities, supports_image_input: true }
        const counted = yield* Effect.result(messagesCount.run({ ...subject, capabilities, client: { ...subject.client, post } }))
        assert.strictEqual(counted._tag, passes ? "Success" : "Failure", JSON.stringify(counted))
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
    )
  }
})
