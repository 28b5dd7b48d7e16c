import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { type Conversing, readTemplate } from "../../src/suite/OwnTemplate.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { strftime } from "../../src/suite/strftime.ts"
import { templateAgrees } from "../../src/suite/templateAgrees.ts"
import { subjectAt } from "./subject.ts"

const tokens = { bos_token: "<s>", eos_token: "</s>" }
const Asked = Schema.fromJsonString(Schema.Struct({ messages: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) }))
const idsOf = (text: string) => [...text].map((character) => character.codePointAt(0) ?? 0)

const tokenizer = {
  vocabulary: 0,
  added: [],
  special: [],
  encode: (texts: ReadonlyArray<string>) => Effect.succeed(texts.map(idsOf)),
  decode: (ids: ReadonlyArray<ReadonlyArray<number>>) => Effect.succeed(ids.map(() => "")),
  find: () => Effect.die("nothing is looked for")
}

/** What an engine answers whose prompt that is. */
const answerOf = (path: string, ids: ReadonlyArray<number>) => {
  const usage = { prompt_tokens: ids.length, completion_tokens: 1, total_tokens: ids.length + 1 }
  return {
    status: 200,
    text: JSON.stringify(path === "/tokenize" ? { tokens: ids } : { choices: [{ message: { content: "" } }], prompt_token_ids: ids, usage })
  }
}

describe("engine-specific input of chat templates", () => {
  const Tools = Schema.fromJsonString(Schema.Struct({ tools: Schema.optionalKey(Schema.Array(Schema.Record(Schema.String, Schema.Unknown))) }))
  const Part = Schema.Struct({ text: Schema.String })
  const textOf = (content: unknown, between: string) =>
    Array.isArray(content)
      ? Schema.decodeUnknownSync(Schema.Array(Part))(content)
          .map(({ text }) => text)
          .join(between)
      : String(content ?? "")
  const text = "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"

  /** Another template, and what else the engine makes of a message. */
  interface How {
    readonly written?: string
    readonly wraps?: (message: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  }

  /** Whether an engine passes that joins texts and shows tools like that, if its contract says `more`. */
  const passes = Effect.fnUntraced(function* (between: string, tool: object, more: Partial<SuiteSubject["offers"]> = {}, how: How = {}) {
    const subject = yield* subjectAt("http://127.0.0.1:9")
    const own = readTemplate({ text: how.written ?? text, tokens })
    const post = Effect.fnUntraced(function* (path: string, body: string) {
      const { messages } = yield* Effect.orDie(Schema.decodeEffect(Asked)(body))
      const { tools } = yield* Effect.orDie(Schema.decodeEffect(Tools)(body))
      const flat = messages.map((message) => how.wraps?.(message) ?? { ...message, content: textOf(message.content, between) })
      const templateInput = tools === undefined ? {} : { tools: tools.map((each) => ({ ...each, ...tool })) }
      const ids = idsOf(own?.render({ messages: flat, extra: templateInput }) ?? "")
      return answerOf(path, ids)
    })
    const template = {
      writesDay: false,
      render: (conversations: ReadonlyArray<Conversing>) => Effect.succeed(conversations.map((each) => own?.render(each) ?? null))
    }
    const repository = { ...subject.repository, tokenizer, template }
    const offers = { ...subject.offers, ...more }
    return Exit.isSuccess(yield* Effect.exit(templateAgrees.run({ ...subject, offers, client: { ...subject.client, post }, repository })))
  })

  it.effect("follows the engine's contract exactly: what SGLang writes is a fault of any other engine", () =>
    Effect.gen(function* () {
      const sglang = { templated: { between: " ", tool: { defer_loading: null } } }
      assert.isTrue(yield* passes("\n", {}))
      assert.isTrue(yield* passes(" ", { defer_loading: null }, sglang))
      for (const [between, tool] of [
        [" ", {}],
        ["\n", { defer_loading: null }]
      ] as const) {
        assert.isFalse(yield* passes(between, tool), `${JSON.stringify(between)} ${JSON.stringify(tool)}`)
        assert.isFalse(yield* passes(between, tool, sglang), `${JSON.stringify(between)} ${JSON.stringify(tool)}`)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("passes texts as parts to a template with parts, and never a list in place of a text", () =>
    Effect.gen(function* () {
      const parts =
        "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}{{ c.text | trim }}{% endfor %}{% endif %}{% endfor %}[assistant]"
      const vllm = { templated: { between: "\n", tool: {}, asParts: true } } as const
      const wraps = (message: Readonly<Record<string, unknown>>) => ({
        ...message,
        content: typeof message.content === "string" && message.role !== "tool" ? [{ type: "text", text: message.content }] : message.content
      })
      assert.isTrue(yield* passes("\n", {}, vllm, { written: parts, wraps }))
      assert.isFalse(yield* passes("\n", {}, {}, { written: parts, wraps }))
      const asPython = (message: Readonly<Record<string, unknown>>) => ({ ...message, content: `[{'type': 'text', 'text': '${String(message.content)}'}]` })
      assert.isFalse(yield* passes("\n", {}, vllm, { wraps: asPython }))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("may come from a library of the model: then only the two routes are compared with each other", () =>
    Effect.gen(function* () {
      assert.isTrue(yield* passes("", { library: true }, { ownPrompts: ({ model_type }) => model_type === "llama" }))
      assert.isFalse(yield* passes("", { library: true }, { ownPrompts: ({ model_type }) => model_type === "gpt_oss" }))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})

describe("a chat template that writes the day", () => {
  const written = "{{ bos_token }}{{ strftime_now('%d %b %Y') }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
  const [now, hour] = [Date.UTC(2026, 10, 22, 23, 30), 3_600_000]

  /** Whether an engine passes whose template is that one and whose clock shows that time. */
  const passes = Effect.fnUntraced(function* (text: string, at: number) {
    const subject = yield* subjectAt("http://127.0.0.1:9")
    const [own, engine] = [readTemplate({ text: written, tokens }), readTemplate({ text, tokens })]
    const post = Effect.fnUntraced(function* (path: string, body: string) {
      const { messages } = yield* Effect.orDie(Schema.decodeEffect(Asked)(body))
      const ids = idsOf(engine?.render({ messages, at }) ?? "")
      return answerOf(path, ids)
    })
    const template = {
      writesDay: true,
      render: (conversations: ReadonlyArray<Conversing>) => Effect.succeed(conversations.map((each) => own?.render(each) ?? null))
    }
    const repository = { ...subject.repository, tokenizer, template }
    return Exit.isSuccess(yield* Effect.exit(templateAgrees.run({ ...subject, client: { ...subject.client, post }, repository })))
  })

  it.effect("is rendered for the days that the engine's clock may show", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(now)
      for (const at of [now, now + hour, now - 24 * hour]) assert.isTrue(yield* passes(written, at))
      assert.isFalse(yield* passes(written, now + 72 * hour))
      assert.isFalse(yield* passes(`{{ bos_token }}${written}`, now))
      assert.isFalse(yield* passes(written.replace("[assistant]", ""), now))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it("writes a day as Python does, without a time", () => {
    const early = Date.UTC(2026, 1, 3, 4, 5)
    const formats = { "%d %b %Y": "03 Feb 2026", "%Y-%m-%d": "2026-02-03", "%A, %-d %B '%y (%a, %-m) %%": "Tuesday, 3 February '26 (Tue, 2) %" }
    for (const [format, expected] of Object.entries(formats)) assert.strictEqual(strftime(format, early), expected)
    for (const format of ["%H:%M", "%c", "%Y %"]) assert.throws(() => strftime(format, early))
    assert.isNull(readTemplate({ text: "{{ strftime_now('%H') }}", tokens })?.render({ messages: [] }) ?? null)
  })
})
