import { createServer, type RequestListener, type Server } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { Effect } from "effect"
import { inColor } from "../src/color.ts"
import { foreignHubNote, parseRepository } from "../src/references.ts"
import { seatrialProcess } from "./runCommand.ts"

/** Runs the command as a process against a gateway with that behavior, because streamed output bypasses the console of the test. */
const chat = (handler: RequestListener) =>
  Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const opened = createServer(handler).listen(0, "127.0.0.1", () => resume(Effect.succeed(opened)))
      }),
      (opened) => Effect.sync(() => opened.close())
    )
    const bound = server.address()
    const address = `http://127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : 0}`
    return yield* seatrialProcess(["chat", "acme/tiny", "--message", "Hello"], { SEATRIAL_ADDRESS: address, SEATRIAL_API_KEY: "k" })
  }).pipe(Effect.scoped)

const frame = (content: string) => dataFrame({ choices: [{ delta: { content } }] })

describe("seatrial chat", () => {
  it.live("streams the answer and escapes control characters", () =>
    Effect.gen(function* () {
      const requests: Array<unknown> = []
      const ran = yield* chat((request, response) => {
        let body = ""
        request.on("data", (chunk: Buffer) => {
          body += chunk.toString()
        })
        request.on("end", () => {
          requests.push(request.url, request.headers.authorization, JSON.parse(body))
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.end(`${frame("Hel")}: heartbeat\n\n${frame("lo\n\u001b[31m")}${dataFrame(streamEnd)}`)
        })
      })
      assert.deepStrictEqual([ran.code, ran.out], [0, "Hello\n\\u001b[31m\n"])
      assert.deepStrictEqual(requests, [
        "/v1/chat/completions",
        "Bearer k",
        { model: "acme/tiny", messages: [{ role: "user", content: "Hello" }], stream: true }
      ])
    })
  )

  it.live("fails with the error of the gateway, including one within a stream", () =>
    Effect.gen(function* () {
      const error = JSON.stringify({ error: { message: "There is no model.", type: "invalid_request_error", code: "model_not_found" } })
      const refused = yield* chat((_, response) => response.writeHead(404, { "content-type": "application/json" }).end(error))
      assert.deepStrictEqual([refused.code, refused.out], [1, ""])
      assert.match(refused.err, /There is no model\. \(model_not_found\)/)
      const cut = yield* chat((_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(`${frame("Hi")}${dataFrame(error)}`))
      assert.strictEqual(cut.code, 1)
      assert.match(cut.err, /There is no model\./)
    })
  )
})

describe("a repository", () => {
  const cases: ReadonlyArray<readonly [text: string, repo: string, ref?: string]> = [
    ["owner/name", "owner/name"],
    ["https://hub.example/owner/name", "owner/name"],
    ["https://hub.example/owner/name/", "owner/name"],
    ["https://hub.example/owner/name?library=x#y", "owner/name"],
    ["https://hub.example/owner/name/tree/v1", "owner/name", "v1"],
    ["https://hub.example/owner/name/tree/refs%2Fpr%2F1", "owner/name", "refs/pr/1"],
    ["https://hub.example/owner/name/blob/main/config.json", "owner/name", "main"],
    ["https://hub.example/owner/name/commit/0123abc", "owner/name", "0123abc"],
    ["https://hub.example/owner/name/discussions/4", "owner/name"],
    ["https://hub.example/", "/"],
    ["http://", "http://"]
  ]
  for (const [text, repo, ref] of cases) {
    it(`${text} is ${repo}${ref === undefined ? "" : ` at ${ref}`}`, () =>
      assert.deepStrictEqual(parseRepository(text), { repo, ...(ref === undefined ? {} : { ref }) }))
  }
})

describe("colors", () => {
  const lines = ["ID    STATUS", "dep_1  failed", "failed-model  activated"]
  it("mark the header and states that fill a column", () =>
    assert.deepStrictEqual(inColor(lines, true, true), [
      "\u001b[1mID    STATUS\u001b[0m",
      "dep_1  \u001b[31mfailed\u001b[0m",
      "failed-model  \u001b[32mactivated\u001b[0m"
    ]))
  it("are omitted if standard output is not a terminal", () => assert.deepStrictEqual(inColor(lines, true), lines))
})

it("a repository of another hub is read from the server's hub, and the command says so", () => {
  assert.strictEqual(
    foreignHubNote("https://evil.example/owner/name"),
    "The server reads owner/name from its own model hub, whatever the host in the address (evil.example)."
  )
  for (const usual of ["owner/name", "https://huggingface.co/owner/name", "http://"]) assert.isNull(foreignHubNote(usual))
})
