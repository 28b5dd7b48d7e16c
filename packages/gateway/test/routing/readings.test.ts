import { assert, describe, it } from "@effect/vitest"
import { engineWire } from "@seatrial/engines"
import { Schema } from "effect"
import { patienceOf } from "../../src/routing/patienceOf.ts"
import { prefixOf } from "../../src/routing/prefixOf.ts"
import { RetryBudget } from "../../src/routing/RetryBudget.ts"
import { readEngineMetrics } from "../../src/routing/readEngineMetrics.ts"
import { overdueStart, secondsUntilNextStart, secondsUntilStarted } from "../../src/routing/secondsUntilStarted.ts"

describe("an engine's metrics", () => {
  const exposition: ReadonlyArray<readonly [string, ReadonlyArray<string>, ReturnType<typeof readEngineMetrics>]> = [
    [
      "of vLLM, of all its replicas together",
      [
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        "# TYPE vllm:num_requests_running gauge",
        'vllm:num_requests_running{engine="0",model_name="a/b"} 3.0',
        'vllm:num_requests_running{engine="1",model_name="a/b"} 4.0',
        'vllm:num_requests_waiting{engine="0",model_name="a/b"} 2.0',
        'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0',
        'vllm:kv_cache_usage_perc{engine="0",model_name="a/b"} 0.25',
        'vllm:kv_cache_usage_perc{engine="1",model_name="a/b"} 0.75',
        'vllm:prompt_tokens_total{engine="0"} 100.0',
        'vllm:generation_tokens_total{engine="0"} 1.1e+01'
      ],
      { running: 7, waiting: 2, cacheUse: 0.75, tokens: 111 }
    ],
    [
      "of SGLang, of one rank",
      [
        'sglang:num_running_reqs{model_name="m",tp_rank="0"} 5.0',
        'sglang:num_running_reqs{model_name="m",tp_rank="1"} 5.0',
        'sglang:num_queue_reqs{tp_rank="0"} 1.0',
        'sglang:token_usage{tp_rank="0"} 0.5'
      ],
      { running: 5, waiting: 1, cacheUse: 0.5, tokens: null }
    ],
    [
      "of SGLang at work on answers that are not over",
      [
        'sglang:generation_tokens_total{is_streaming="false"} 64.0',
        'sglang:realtime_tokens_total{tp_rank="0",mode="prefill_compute"} 900.0',
        'sglang:realtime_tokens_total{tp_rank="0",mode="decode"} 40.0',
        'sglang:realtime_tokens_total{tp_rank="1",mode="decode"} 40.0'
      ],
      { running: null, waiting: null, cacheUse: null, tokens: 1_004 }
    ],
    [
      "that are none",
      ["<html>", "vllm:num_requests_running", "vllm:num_requests_waiting{} NaN", ""],
      { running: null, waiting: null, cacheUse: null, tokens: null }
    ]
  ]
  for (const [which, lines, expected] of exposition)
    it(`are read: those ${which}`, () =>
      assert.deepStrictEqual(readEngineMetrics(lines.join("\n"), engineWire(which.includes("SGLang") ? "sglang" : "vllm")), expected))
})

describe("the time that a caller waits", () => {
  const announced: ReadonlyArray<readonly [Readonly<Record<string, string>>, number | null]> = [
    [{}, null],
    [{ "x-stainless-timeout": "600" }, 599_000],
    [{ "x-stainless-read-timeout": "20", "x-stainless-timeout": "600" }, 19_000],
    [{ "x-stainless-timeout": "0" }, 500],
    [{ "x-stainless-timeout": "1" }, 500],
    [{ "x-stainless-timeout": "not given" }, null],
    [{ "x-stainless-read-timeout": "-1" }, null]
  ]
  for (const [headers, expected] of announced) it(`is ${expected} ms by ${JSON.stringify(headers)}`, () => assert.strictEqual(patienceOf(headers), expected))

  it("is reduced by the time that has passed", () => assert.strictEqual(patienceOf({ "x-stainless-timeout": "20" }, 5_000), 14_000))
})

describe("Retry-After for a model that starts", () => {
  const starts: ReadonlyArray<readonly [number | null, number | null, number, number]> = [
    [null, null, 0, 30],
    [null, 45, 0, 45],
    [null, 45, 44_500, 1],
    [null, 45, 46_000, 1],
    [null, 45, 100_000, 14],
    [null, 45, 200_000, 39],
    [null, 45, 900_000, 60],
    [null, 400, 55_000, 60],
    [20_000, 400, 5_500, 15]
  ]
  for (const [lastStart, startSeconds, passed, expected] of starts) {
    it(`is ${expected} s after ${passed} ms, if the last start took ${lastStart ?? "no"} ms here and ${startSeconds ?? "no"} s as measured`, () =>
      assert.strictEqual(secondsUntilStarted({ lastStart, startSeconds, passed }), expected))
  }
})

describe("Retry-After for a model whose engine fails at each start", () => {
  const starts: ReadonlyArray<readonly [number | null, number | null, number, number]> = [
    [null, 12, 35_000, 47],
    [null, 12, -5_000, 12],
    [4_200, 12, 0, 5],
    [null, null, 10_000, 40],
    [null, 400, 0, 60],
    [0, null, 0, 1]
  ]
  for (const [lastStart, startSeconds, left, expected] of starts) {
    it(`is ${expected} s if the next start is in ${left} ms, and the last took ${lastStart ?? "no"} ms here and ${startSeconds ?? "no"} s as measured`, () =>
      assert.strictEqual(secondsUntilNextStart({ lastStart, startSeconds }, left), expected))
  }
})

describe("a start that may have failed", () => {
  const starts: ReadonlyArray<readonly [number | null, number | null, number, number | null]> = [
    [null, 45, 195_000, null],
    [null, 45, 195_001, 45],
    [20_000, 400, 120_001, 20],
    [null, null, 150_001, 30]
  ]
  for (const [lastStart, startSeconds, passed, expected] of starts) {
    it(`is ${expected === null ? "not " : ""}one of ${passed} ms where it took ${lastStart ?? "no"} ms here and ${startSeconds ?? "no"} s as measured`, () =>
      assert.strictEqual(overdueStart({ lastStart, startSeconds, passed }), expected))
  }
})

describe("the prefix that requests share", () => {
  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
  const system = { role: "system", content: "You are terse." }
  const user = { role: "user", content: [{ type: "text", text: "Hello" }] }
  const same: ReadonlyArray<readonly [string, Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>]> = [
    ["later messages", { messages: [system, user] }, { messages: [system, user, { role: "assistant", content: "Hi" }, { role: "user", content: "More" }] }],
    ["sampling parameters", { messages: [user], temperature: 1 }, { messages: [user], temperature: 0 }],
    ["anything but the caller's key", { prompt_cache_key: "k", messages: [user] }, { prompt_cache_key: "k", messages: [system] }],
    ["text after 1,024 characters", { prompt: `${"x".repeat(1_024)}a` }, { prompt: `${"x".repeat(1_024)}b` }]
  ]
  for (const [what, one, other] of same) it(`does not depend on ${what}`, () => assert.strictEqual(prefixOf(one), prefixOf(other)))

  const unlike: ReadonlyArray<readonly [string, Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>]> = [
    ["tools", { tools, messages: [user] }, { messages: [user] }],
    ["the system prompt", { messages: [system, user] }, { messages: [user] }],
    ["the system prompt of Messages", { system: "a", messages: [user] }, { system: [{ type: "text", text: "b" }], messages: [user] }],
    ["instructions", { instructions: "a", input: "c" }, { instructions: "b", input: "c" }],
    ["the input", { input: "a" }, { input: [{ role: "user", content: "b" }] }],
    ["the first user message", { messages: [system, user] }, { messages: [system, { role: "user", content: "Bye" }] }],
    ["the prompt", { prompt: ["a"] }, { prompt: ["b"] }],
    ["tokens of the prompt", { prompt: [1, 2] }, { prompt: [12] }]
  ]
  for (const [what, one, other] of unlike) it(`depends on ${what}`, () => assert.notStrictEqual(prefixOf(one), prefixOf(other)))

  it("has at most 1,024 characters, whatever the body contains", () => {
    const deep = Array.from({ length: 60 }).reduce<unknown>((inner) => [inner, "x".repeat(100)], "y")
    for (const body of [{ tools: deep }, { system: "s".repeat(5_000_000) }, { messages: Array.from({ length: 10_000 }, () => system) }]) {
      assert.isAtMost(prefixOf(body).length, 1_024)
    }
  })
})

describe("the retry budget", () => {
  it.prop(
    "are never more than a tenth of the requests beyond those in hand, and the first of a quiet gateway is one of these",
    [Schema.Array(Schema.Boolean)],
    ([moves]) => {
      const budget = new RetryBudget()
      if (!budget.spend()) return false
      let requests = 0
      let attempts = 1
      for (const request of [...moves, ...Array.from({ length: 60 }, () => false)]) {
        if (request) {
          budget.earn()
          requests++
        } else if (budget.spend()) attempts++
        if (attempts > 10 + requests / 10) return false
      }
      return true
    }
  )
})
