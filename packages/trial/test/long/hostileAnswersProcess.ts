import { argv, stdout } from "node:process"
import { Effect } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { makeEngineClient } from "../../src/EngineClient.ts"
import { vllmMetrics } from "../engineMetrics.ts"

const [tokens, values, bytes] = [131_072, 6 * 131_072, 24 * 2 ** 20]

/** A list with as many values as an answer may have, if each item has that many. */
const listOf = (inItem: number, item: (at: number) => string) => `[${Array.from({ length: Math.floor((values - 1) / inItem) }, (_, at) => item(at)).join(",")}]`

const place = (at: number) => `{"${(at * 7_919) % 150_000}":{"logprob":-1.2345678901234567,"rank":12,"decoded_token":"token ${at % 5_000}"}}`
const usage = `"usage":{"prompt_tokens":${tokens},"completion_tokens":1,"total_tokens":${tokens + 1}}`

/** Answers by name. Those that are not refused fill the memory as far as an answer can. */
const answers: Readonly<Record<string, () => string>> = {
  lists: () => listOf(2, () => "[]"),
  objects: () => listOf(2, () => "{}"),
  keys: () => listOf(2, (at) => `{"k${at}":0}`),
  numbers: () => listOf(3, (at) => `{"${at + 4_000_000_000}":[]}`),
  members: () => `{${Array.from({ length: values - 1 }, (_, at) => `"k${at}":0`).join(",")}}`,
  nested: () => `${Array.from({ length: values - 1 }, (_, at) => `{"k${at}":`).join("")}0${"}".repeat(values - 1)}`,
  deep: () => `${"[".repeat(values - 1)}${"]".repeat(values - 1)}`,
  "too many": () => `[${"[],".repeat(bytes / 3 - 2)}0]`,
  sound: () =>
    `{"choices":[{"text":"a","finish_reason":"length","prompt_logprobs":[null,${Array.from({ length: tokens - 1 }, (_, at) => place(at)).join(",")}]}],${usage}}`
}

/** Prints how the client of an engine takes the answer of that name. `decoded`: the answer is only decoded, without a limit. */
const [name = "", how] = argv.slice(2)
const text = answers[name]?.() ?? ""
if (how === "decoded") JSON.parse(text)
const http = HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response(new Blob([text])))))
const ended = await Effect.runPromise(
  makeEngineClient({ url: "http://engine", timeout: "10 minutes", work: vllmMetrics.work }).pipe(
    Effect.flatMap((client) => client.ask("/", {})),
    Effect.as("answered"),
    Effect.catchTags({ EngineUnreachable: ({ message }) => Effect.succeed(message), Unexpected: ({ detail }) => Effect.succeed(detail) }),
    Effect.provideService(HttpClient.HttpClient, http)
  )
)
stdout.write(JSON.stringify({ ended }))
