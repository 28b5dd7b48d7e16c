import { PassThrough } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { messages } from "../src/dialects/messages.ts"
import { chat } from "../src/dialects/openAi.ts"
import { readEngineError } from "../src/engineError.ts"
import { makeServer } from "../src/listen.ts"
import * as refusals from "../src/refusals.ts"

const { Refusal } = refusals
const types: Readonly<Record<number, readonly [openAi: string, anthropic: string]>> = {
  400: ["invalid_request_error", "invalid_request_error"],
  401: ["authentication_error", "authentication_error"],
  402: ["billing_error", "billing_error"],
  403: ["permission_error", "permission_error"],
  404: ["not_found_error", "not_found_error"],
  405: ["invalid_request_error", "invalid_request_error"],
  413: ["invalid_request_error", "request_too_large"],
  415: ["invalid_request_error", "invalid_request_error"],
  431: ["invalid_request_error", "invalid_request_error"],
  429: ["rate_limit_error", "rate_limit_error"],
  499: ["api_error", "api_error"],
  500: ["api_error", "api_error"],
  502: ["api_error", "api_error"],
  503: ["api_error", "overloaded_error"],
  504: ["api_error", "timeout_error"]
}

/** All errors that a caller can get. Functions that build errors get sample arguments. */
const all = Object.entries(refusals).flatMap(([name, value]) => {
  if (value instanceof Refusal) return [value]
  if (typeof value !== "function" || name === "Refusal" || name === "faultOf" || name === "writeRefusal") return []
  const refusal: unknown = Reflect.apply(value, undefined, name === "modelStarting" || name.endsWith("RateLimited") ? [90] : ["words", "words"])
  return refusal instanceof Refusal ? [refusal] : []
})

describe("each error", () => {
  it("has a status and a unique code", () => {
    assert.isAtLeast(all.length, 20)
    const codes = all.map(({ code }) => code)
    assert.strictEqual(new Set(codes).size, codes.length, codes.join(" "))
  })

  it("has a type that the clients of its path know, and Retry-After if a retry helps", () => {
    for (const refusal of all) {
      const { code, headers = {}, retryAfter, status } = refusal
      const [openAi, anthropic] = types[status] ?? []
      assert.deepInclude(JSON.parse(chat.errorBody(refusal, "req_1")).error, { type: openAi, code, request_id: "req_1" }, code)
      const described = JSON.parse(messages.errorBody(refusal, "req_1"))
      assert.deepStrictEqual(
        [described.type, described.error.type, described.error.details.error_code, described.request_id],
        ["error", anthropic, code, "req_1"],
        code
      )
      if (status === 429 || status === 502 || status === 503)
        assert.isTrue(Number.isInteger(retryAfter) && retryAfter !== undefined && retryAfter >= 1 && retryAfter <= 60, code)
      // Clients would repeat long requests three times, and they always repeat after 408 and 409.
      if (status === 504) assert.strictEqual(headers["x-should-retry"], "false")
      assert.notInclude([408, 409], status)
    }
  })
})

describe("an engine's refusal", () => {
  const described = (param: unknown, endpoint: InferencePath = "/v1/chat/completions") => {
    const body = JSON.stringify({ error: { message: "secret", type: "BadRequestError", param, code: 400 } })
    const { message, param: named } = readEngineError(body, 400, { endpoint, maxModelLen: 2_048 })
    return [named, message]
  }

  it("is reported with the engine's field if the path has it, and never with the engine's text", () => {
    assert.deepStrictEqual(described("logit_bias"), ["logit_bias", "logit_bias: the engine cannot process the request with this value."])
    assert.deepStrictEqual(described("text", "/v1/responses")[0], "text")
    assert.deepStrictEqual(described("messages", "/v1/responses")[0], "input")
    assert.deepStrictEqual(described("response_format", "/v1/messages")[0], "output_config")
    const unnamed = [null, "The engine cannot process the request with these parameters."]
    for (const param of [null, undefined, 1, {}, "text", "secret", "logit_bias "]) assert.deepStrictEqual(described(param), unnamed)
  })
})

describe("a schema that an engine does not support", () => {
  const described = (message: string, param: string | null = null) =>
    readEngineError(JSON.stringify({ error: { message, type: "BadRequestError", param, code: 400 } }), 400, {
      endpoint: "/v1/chat/completions",
      maxModelLen: 2_048
    }).message

  it("is reported with the keywords that the engine named", () => {
    assert.strictEqual(
      described('Grammar error: Unimplemented keys: ["uniqueItems", "if", "then"]'),
      "The engine cannot process the request with these parameters: it does not support the JSON schema keywords uniqueItems, if, then."
    )
    assert.strictEqual(
      described("The JSON schema contains features that are not supported: /properties/n: the keyword multipleOf is not supported", "response_format"),
      "response_format: the engine cannot process the request with this value: it does not support the JSON schema keywords multipleOf."
    )
    assert.match(described("The provided JSON schema contains features not supported by xgrammar."), /does not support some keywords of the JSON schema\.$/)
  })

  it("is reported without the caller's own words", () => {
    for (const message of [
      'Unimplemented keys: ["secret"]',
      "JSON schema contains features: the keyword secret is not supported",
      "the keyword pattern is not supported"
    ])
      assert.notMatch(described(message), /secret|pattern/)
  })
})

describe("a model that does not exist", () => {
  it("is reported with the naming of models and the path that lists them", () => {
    const { message, param } = refusals.modelNotFound("tiny-chat")
    assert.strictEqual(param, "model")
    assert.match(message, /^The model tiny-chat does not exist, or your organization may not use it\. GET \/v1\/models .*<organization>\/<model>\.$/)
    assert.isBelow(refusals.modelNotFound("a".repeat(1_000)).message.length, 300)
  })
})

describe("a connection without a request in time", () => {
  it("is closed without an answer", () => {
    const socket = new PassThrough()
    const code = "ERR_HTTP_REQUEST_TIMEOUT"
    makeServer().emit("clientError", Object.assign(new Error(code), { code }), socket)
    assert.deepStrictEqual([socket.destroyed, socket.read()], [true, null])
  })
})
