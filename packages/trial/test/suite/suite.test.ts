import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { batchEqualsAlone } from "../../src/suite/batchChecks.ts"
import { compareLikelihood } from "../../src/suite/bootCheck.ts"
import { isBroken } from "../../src/suite/Check.ts"
import { configCoherent } from "../../src/suite/configCoherent.ts"
import { finishReasons } from "../../src/suite/finishReasons.ts"
import { contextEdge } from "../../src/suite/limitChecks.ts"
import { readPinned } from "../../src/suite/readPinned.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { type SuiteState, suiteChecks } from "../../src/suite/suiteChecks.ts"
import { suite } from "../../src/suite/suiteVersion.ts"
import { fakeContext, serveFakeEngine } from "./fakeEngine.ts"
import { type Fault, faults } from "./fakeWords.ts"
import { subjectAt } from "./subject.ts"

const trial = (fault?: Fault, change: Partial<SuiteSubject> = {}, rows?: ReadonlySet<string>) =>
  Effect.gen(function* () {
    const { url } = yield* serveFakeEngine(fault)
    return yield* runSuite(yield* subjectAt(url, change), (state) => suiteChecks(state).filter(({ name }) => rows === undefined || rows.has(name)))
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

/** The rows that each fault must fail, and no others. */
const kills: Record<Fault, ReadonlyArray<string>> = {
  "other name": ["engine_identity"],
  "other context": ["engine_identity"],
  "other version": ["engine_identity"],
  "part of its version": ["engine_identity"],
  "weights of another commit": ["engine_identity"],
  "weights are wrong": ["text_likelihood"],
  "order is ignored": ["text_likelihood"],
  NaN: ["text_likelihood"],
  "writes only one word": ["output_sane"],
  "usage one short": ["usage_exact"],
  "prompt is counted differently when streamed": ["usage_exact"],
  "no usage chunk": ["usage_exact", "stream_equals_whole"],
  "always reports stop": ["finish_reasons"],
  "never reports stop": ["finish_reasons"],
  "last chunk lost": ["stream_equals_whole"],
  "no end marker": ["stream_equals_whole"],
  "sends more after the end marker": ["stream_equals_whole"],
  "two roles": ["stream_equals_whole"],
  "stop strings leak when streamed": ["stop_strings"],
  "skips the best token": ["greedy_is_top"],
  "seed is ignored": ["sampling_obeyed"],
  "temperature is ignored": ["sampling_obeyed"],
  "logit bias is ignored": ["sampling_obeyed"],
  "answers vary": ["greedy_repeats"],
  "answers vary under load": [],
  "every tenth answer varies": ["greedy_repeats"],
  "nothing is cached": ["cache_hit_equal"],
  "cached tokens are not reported": ["cache_hit_equal"],
  "salt is ignored": ["cache_hit_equal"],
  "cached answers differ": ["cache_hit_equal"],
  "answers contain text of other requests": ["batch_equals_alone"],
  "one answer for all prompts": ["prompts_apart"],
  "key is not found": ["needle"],
  "JSON mode is ignored": ["json_mode"],
  "schema is ignored when streamed": ["json_schema"],
  "some objects are filled with blanks to the limit": [],
  "all objects are filled with blanks to the limit": ["json_schema"],
  "objects are incomplete": ["json_schema"],
  "other objects than the schema's are cut by the limit": ["json_schema"],
  "rare keywords of schemas are ignored": ["json_schema"],
  "calls lack their last brace": ["tool_choice_auto", "tool_choice_required", "tool_choice_named", "tool_parallel", "tool_single", "tool_strict"],
  "functions are not in the prompt": ["tool_choice_auto"],
  "strict is ignored": ["tool_strict"],
  "calls although tool_choice is none": ["tool_choice_none"],
  "one call for two questions": ["tool_parallel"],
  "several calls if one is allowed": ["tool_single"],
  "results are ignored": ["tool_round_trip"],
  "accepts bad requests": ["bad_requests"],
  "breaks on bad requests": ["bad_requests"],
  "refuses without an error body": ["bad_requests"],
  "stops after a bad request": ["bad_requests"],
  "limit off by one": ["context_edge"],
  "cuts long prompts": ["context_edge"],
  "breaks at the limit": ["context_edge"],
  "reserves the last two tokens": ["context_edge"],
  "a request keeps running": ["still_alive"],
  "every other request fails": ["usage_exact", "finish_reasons", "stream_equals_whole", "greedy_repeats", "bad_requests"]
}
/** Checks that run with every fault in addition to those that it must fail: fast ones, and similar ones. */
const commonChecks = ["engine_identity", "usage_exact", "finish_reasons", "tool_choice_none", "json_mode", "batch_equals_alone", "still_alive"]
/** Faults that may also fail other checks. */
const wide: ReadonlySet<Fault> = new Set<Fault>([
  "every other request fails",
  "answers vary",
  "every tenth answer varies",
  "usage one short",
  "never reports stop",
  "no usage chunk",
  "a request keeps running",
  "writes only one word",
  "last chunk lost",
  "stops after a bad request"
])
const capabilities = /^(?:json|tool)_/
const informing: ReadonlySet<string> = new Set(["golden_answers", "output_sane", "needle"])

describe("the suite", () => {
  it.live("passes a sound engine and reports its checks", () =>
    Effect.gen(function* () {
      const { report } = yield* trial()
      assert.deepStrictEqual(
        report.checks.filter(({ passed }) => !passed),
        []
      )
      assert.isTrue(report.passed)
      assert.isUndefined(report.withdrawn)
      const [version, ...words] = report.checks.at(-1)?.detail?.split(": ") ?? []
      assert.strictEqual(version, `${suite.name} ${suite.version}`)
      const counts = "32 run, no_reference, no_preemption: the engine does not report its KV cache, 48 not applicable"
      assert.match(words.join(": "), new RegExp(`^${counts} \\(loaded_tensors, tokenizer_agrees, .*\\), \\d+ s$`))
      assert.isTrue(report.checks.every(({ detail }) => (detail ?? "").length <= 240))
    })
  )

  for (const fault of faults) {
    it.live(`an engine that has the fault "${fault}" fails ${kills[fault].join(", ") || "nothing"}`, () =>
      Effect.gen(function* () {
        const { report } = yield* trial(fault, {}, new Set([...kills[fault], ...commonChecks]))
        const failed = report.checks.filter(({ passed }) => !passed).map(({ name }) => name)
        assert.deepStrictEqual(
          kills[fault].filter((name) => !failed.includes(name)),
          []
        )
        if (!wide.has(fault)) assert.deepStrictEqual(failed, kills[fault])
        const required = failed.filter((name) => !capabilities.test(name) && !informing.has(name))
        assert.strictEqual(report.passed, required.length === 0)
        assert.deepStrictEqual(
          report.withdrawn ?? [],
          failed.filter((name) => capabilities.test(name))
        )
      })
    )
  }

  const contradictions: ReadonlyArray<readonly [fault: string, change: (subject: SuiteSubject) => Partial<SuiteSubject>, row: string]> = [
    ["files that were not verified", ({ start }) => ({ start: { ...start, verifiedFiles: null } }), "files_match_commit"],
    ["files that can be written to", ({ start }) => ({ start: { ...start, readOnly: false } }), "files_match_commit"],
    ["an engine that can reach the hub", ({ start }) => ({ start: { ...start, offline: false } }), "files_match_commit"],
    ["a folder other than the commit's", ({ start }) => ({ start: { ...start, localPath: false } }), "files_match_commit"],
    ["an image other than the revision's", ({ start }) => ({ start: { ...start, ownImage: false } }), "engine_identity"],
    ["files that are too short", ({ repository }) => ({ repository: { ...repository, weightsBytes: 4_000_200 } }), "tensors_complete"],
    [
      "end ids beyond the vocabulary",
      ({ repository }) => ({ repository: { ...repository, small: new Map([["config.json", '{"eos_token_id": 1000}']]) } }),
      "config_coherent"
    ],
    ["likelihoods of an earlier trial with other texts", () => ({ earlier: [{ fingerprints: [], likelihood: [[]] }] }), ""]
  ]
  for (const [fault, change, row] of contradictions) {
    it.live(`${row === "" ? "no check" : row} fails because of ${fault}`, () =>
      Effect.gen(function* () {
        const { url } = yield* serveFakeEngine()
        const subject = yield* subjectAt(url)
        const rows = new Set(["files_match_commit", "tensors_complete", "config_coherent", "engine_identity", "text_likelihood"])
        const { report } = yield* runSuite({ ...subject, ...change(subject) }, (state) => suiteChecks(state).filter(({ name }) => rows.has(name)))
        assert.deepStrictEqual(
          report.checks.filter(({ passed }) => !passed).map(({ name }) => name),
          row === "" ? [] : [row]
        )
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
    )
  }

  it.live("an HTTP 5xx after a start leads to another attempt, not to a difference", () =>
    Effect.gen(function* () {
      const differs = Effect.fnUntraced(function* (fault: Fault) {
        const { url } = yield* serveFakeEngine(fault)
        return yield* compareLikelihood(yield* subjectAt(url, { earlier: [{ fingerprints: [], likelihood: [[-2]] }] }))
      })
      assert.strictEqual((yield* differs("weights are wrong"))._tag, "Differs")
      const broken = yield* Effect.flip(differs("every other request fails"))
      assert.isTrue(broken._tag === "Unexpected" && isBroken(broken))
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("the reserved end of the context is as long as the contract states", () =>
    Effect.gen(function* () {
      const tried = Effect.fnUntraced(function* (fault: Fault | undefined, unfilled: number) {
        const { url } = yield* serveFakeEngine(fault)
        const subject = yield* subjectAt(url)
        return yield* Effect.catchTag(contextEdge.run({ ...subject, offers: { ...subject.offers, unfilled } }), "Unexpected", ({ detail }) =>
          Effect.succeed(detail)
        )
      })
      assert.strictEqual(yield* tried("reserves the last two tokens", 2), `${fakeContext} tokens`)
      assert.strictEqual(yield* tried("reserves the last two tokens", 1), `${fakeContext - 8} + 6 tokens, asked for ${fakeContext - 8} + 7`)
      assert.strictEqual(yield* tried(undefined, 2), `${fakeContext - 8} + 8 tokens, asked for ${fakeContext - 8} + 6`)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("a tokenizer has no ids beyond the embedding except unused added tokens, and an end token in one of its files", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9")
      /** A vocabulary of this size, one added token behind the embedding's 1,000 rows, and the end token. */
      const judged = (count: number, eos_token = "t0", ends: object = {}) => {
        const vocab = Object.fromEntries(["a", ...Array.from({ length: count - 1 }, (_, at) => `t${at}`)].map((token, id) => [token, id]))
        const added_tokens = [{ id: 1_000, content: "<pad>", special: true, normalized: false, lstrip: false, rstrip: false, single_word: false }]
        const parts = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null }
        const config = JSON.stringify({ eos_token })
        const file = Buffer.from(JSON.stringify({ ...parts, added_tokens, model: { type: "BPE", vocab, merges: [] } }))
        return readPinned({ tokenizer: { file, config }, template: null }).pipe(
          Effect.flatMap((pinned) =>
            configCoherent.run({
              ...subject,
              repository: {
                ...subject.repository,
                ...pinned,
                small: new Map([
                  ["tokenizer_config.json", config],
                  ["config.json", JSON.stringify(ends)]
                ])
              }
            })
          ),
          Effect.scoped,
          Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(detail))
        )
      }
      assert.deepStrictEqual(
        [yield* judged(10, "<end>", { eos_token_id: 2 }), yield* judged(10, "<end>"), yield* judged(10), yield* judged(10, "<pad>"), yield* judged(1_002)],
        [
          "1 end ids; the tokenizer's end-of-turn token is not in its own vocabulary, 1 added tokens beyond the embedding",
          "no end-of-turn token is named anywhere",
          "1 end ids, 1 added tokens beyond the embedding",
          "end-of-turn id 1000 in a vocabulary of 1000",
          "the tokenizer gives ids up to 1001, the embedding has 1000 rows"
        ]
      )
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("the configuration names a type for each layer, and possibly more for further heads", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9")
      const judged = (types: number) => {
        const config = { num_hidden_layers: 3, layer_types: Array.from({ length: types }, () => "full_attention"), eos_token_id: 2 }
        const small = new Map([["config.json", JSON.stringify(config)]])
        return configCoherent
          .run({ ...subject, repository: { ...subject.repository, small } })
          .pipe(Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed(`failed: ${detail}`)))
      }
      assert.deepStrictEqual([yield* judged(2), yield* judged(3), yield* judged(4)], ["failed: 2 types for 3 layers", "1 end ids", "1 end ids"])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("the share of answers that equal those alone is judged over both attempts", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9", { slots: 32, parameters: 1e9 })
      let requestCount = 0
      // Of 32 alone and twice 32 together seven differ, the first time.
      const post = () =>
        Effect.sync(() => {
          const content = requestCount >= 32 && requestCount < 39 ? "b" : "a"
          requestCount++
          return {
            status: 200,
            text: JSON.stringify({ choices: [{ message: { content } }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })
          }
        })
      const row = batchEqualsAlone()
      const run = row.run({ ...subject, client: { ...subject.client, post } })
      assert.deepInclude(yield* Effect.flip(run), { detail: "57 of 64 the same as alone, 0 near ties", open: true })
      assert.strictEqual(yield* run, "121 of 128 the same as alone, 0 near ties")
      // If the engine promises batch invariance, the same share is too small, also over both attempts.
      requestCount = 0
      const promised = batchEqualsAlone().run({ ...subject, batchInvariant: true, client: { ...subject.client, post } })
      assert.strictEqual((yield* Effect.flip(promised))._tag, "Unexpected")
      assert.deepInclude(yield* Effect.flip(promised), { detail: "121 of 128 the same as alone, 0 near ties" })
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("a near tie that a batch turns is not a leak, also for a model without messages", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9", { slots: 4, parameters: 1e9, chat: false })
      let requestCount = 0
      // Alone the one, together the other, of which each is among the likeliest.
      const post = (_: string, body: string) =>
        Effect.sync(() => {
          const token = requestCount++ < 4 ? "a" : "b"
          const logprobs = body.includes('"logprobs":5') ? { logprobs: { tokens: [token], top_logprobs: [{ a: -0.7, b: -0.7 }] } } : {}
          return {
            status: 200,
            text: JSON.stringify({ choices: [{ text: token, ...logprobs }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })
          }
        })
      assert.strictEqual(yield* batchEqualsAlone().run({ ...subject, client: { ...subject.client, post } }), "0 of 8 the same as alone, 8 near ties")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("a code that is lost after a near tie counts as a difference, and any other lost code fails at once", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9", { slots: 32, parameters: 1e9 })
      /** This many answers of each round of 32 begin differently than alone, and are cut before their code. */
      const rowOf = (others: number, near: boolean) => {
        let requestCount = 0
        const post = (_: string, body: string) =>
          Effect.sync(() => {
            const code = /Repeat this code: ([\w-]+)/.exec(body)?.[1] ?? ""
            const other = requestCount >= 32 && requestCount % 32 < others
            requestCount++
            const [content, token] = other ? ["The code that you gave me is", "The"] : [code, code]
            const top_logprobs = near ? [{ token: code }, { token: "The" }] : [{ token }]
            const choice = { message: { content }, logprobs: { content: [{ token, top_logprobs }] } }
            return { status: 200, text: JSON.stringify({ choices: [choice], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }) }
          })
        const tried = batchEqualsAlone().run({ ...subject, client: { ...subject.client, post } })
        return Effect.catchTag(tried, "Unexpected", ({ detail, open }) => Effect.succeed(`failed${open === true ? ", so far" : ""}: ${detail}`))
      }
      assert.strictEqual(yield* rowOf(1, true), "62 of 64 the same as alone, 0 near ties")
      assert.strictEqual(yield* rowOf(4, true), "failed, so far: 56 of 64 the same as alone, 0 near ties")
      assert.strictEqual(yield* rowOf(1, false), "failed: 2 of 64 answers lack their own code when other requests run at the same time")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("an answer that continues past an end token fails; an answer without an end token does not", () =>
    Effect.gen(function* () {
      const { repository, ...subject } = yield* subjectAt("http://127.0.0.1:9", { parameters: 1e9 })
      const small = new Map([
        ["config.json", '{"eos_token_id": 1}'],
        ["generation_config.json", '{"eos_token_id": [2, 7]}']
      ])
      /** What each of the questions for a short answer is answered with; `thought` means that nothing is said yet. */
      const judge = (...answers: ReadonlyArray<{ readonly how?: "thought" | "ended"; readonly ids?: ReadonlyArray<number> }>) => {
        let count = 0
        const post = (_: string, body: string) =>
          Effect.sync(() => {
            const { how, ids } = body.includes("Tell a long story") ? {} : (answers[count++] ?? {})
            const message = how === "thought" ? { content: "", reasoning: "Hm." } : { content: "Yes. Yes." }
            const completion_tokens = ids?.length ?? 64
            const usage = { prompt_tokens: 1, completion_tokens, total_tokens: completion_tokens + 1 }
            const finish_reason = how === "ended" ? "stop" : "length"
            return { status: 200, text: JSON.stringify({ choices: [{ message, finish_reason, token_ids: ids ?? null }], usage }) }
          })
        const run = finishReasons.run({ ...subject, repository: { ...repository, small }, client: { ...subject.client, post } })
        return Effect.catchTag(run, "Unexpected", ({ detail }) => Effect.succeed(`failed: ${detail}`))
      }
      const endless = Array.from({ length: 64 }, () => 1)
      assert.strictEqual(yield* judge({ ids: endless }, { ids: endless }, { ids: endless }), "no answer ends by itself within 64 tokens")
      assert.strictEqual(yield* judge({}, {}, {}), "no answer ends by itself within 64 tokens")
      assert.strictEqual(yield* judge({ how: "thought" }, {}, {}), "still thinks after 64 tokens")
      assert.strictEqual(yield* judge({}, { how: "ended", ids: [3, 4, 7] }), "ends by itself")
      assert.strictEqual(yield* judge({ ids: [...endless.slice(1), 2] }, { how: "ended" }), "ends by itself")
      assert.strictEqual(yield* judge({ ids: endless.with(2, 7) }), "failed: an answer of 64 tokens goes on past end token 3")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("a small and weak model passes although it finds no key, knows no answer, repeats itself and ends no answer", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9", { parameters: 134_515_008, maxContext: 2_048 })
      const post = (_: string, body: string) =>
        Effect.sync(() => {
          const completion_tokens = Number(/"max_tokens":(\d+)/.exec(body)?.[1] ?? 1)
          const message = { content: "The The The The " }
          const usage = { prompt_tokens: 1, completion_tokens, total_tokens: completion_tokens + 1 }
          return { status: 200, text: JSON.stringify({ choices: [{ message, text: message.content, finish_reason: "length" }], usage }) }
        })
      const unableChecks = new Set(["golden_answers", "output_sane", "needle", "finish_reasons"])
      const weak = { ...subject, client: { ...subject.client, post } }
      for (const parameters of [134_515_008, 7e9]) {
        const { report } = yield* runSuite({ ...weak, parameters }, (state) => suiteChecks(state).filter(({ name }) => unableChecks.has(name)))
        assert.isTrue(report.passed)
        assert.isUndefined(report.withdrawn)
        assert.match(report.checks.find(({ name }) => name === "needle")?.detail ?? "", /^0 of 3 in \d+, .* expected; informs only$/)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("the share of repeated greedy answers is judged over both attempts", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9", { parameters: 1e9 })
      let requestCount = 0
      // Of 16 prompts that are asked three times alone three change, the first time.
      const post = () =>
        Effect.sync(() => {
          const content = requestCount < 9 ? String(requestCount % 3) : "a"
          requestCount++
          return {
            status: 200,
            text: JSON.stringify({ choices: [{ message: { content } }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })
          }
        })
      const row =
        suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null }).find(({ name }) => name === "greedy_repeats") ?? assert.fail()
      const run = row.run({ ...subject, client: { ...subject.client, post } })
      assert.deepInclude(yield* Effect.flip(run), { detail: "3 of 16 greedy prompts changed between runs on an idle engine", open: true })
      assert.match(yield* run, /^alone 29 of 32, /)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("a likelihood that shifted since an earlier trial fails", () =>
    Effect.gen(function* () {
      const { url } = yield* serveFakeEngine()
      const subject = yield* subjectAt(url)
      const only = (state: SuiteState) => suiteChecks(state).filter(({ name }) => name === "text_likelihood")
      const { likelihood } = yield* runSuite(subject, only)
      assert.isNotNull(likelihood)
      const row = (by: number, every: number, otherEngine: string | null = null) => {
        const before = likelihood?.map((text) => text.map((value, at) => (at % every === 0 ? value - by : value))) ?? []
        return Effect.map(runSuite({ ...subject, earlier: [{ otherEngine, fingerprints: [], likelihood: before }] }, only), ({ report }) =>
          report.checks.find(({ name }) => name === "text_likelihood")
        )
      }
      const [same, mean, absolute] = [yield* row(0.002, 1), yield* row(0.02, 1), yield* row(2, 9)]
      assert.deepStrictEqual([same?.passed, mean?.passed, absolute?.passed], [true, false, false])
      assert.match(same?.detail ?? "", /; mean 0\.0020, absolute 0\.0020 from an earlier trial; /)
      // Kernels of another engine version only round differently.
      const [rounded, wrong, strayed] = [yield* row(0.02, 1, "0.32.0"), yield* row(0.06, 1, "0.32.0"), yield* row(3, 9, "0.32.0")]
      assert.deepStrictEqual([rounded?.passed, wrong?.passed, strayed?.passed], [true, false, false])
      assert.match(rounded?.detail ?? "", /; mean 0\.0200, absolute 0\.0200 from an earlier trial of engine version 0\.32\.0; /)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("keeps reproducible fingerprints: SHA-256 over the content of a greedy answer of 64 tokens", () =>
    Effect.gen(function* () {
      const { url } = yield* serveFakeEngine()
      const subject = yield* subjectAt(url)
      const only = (state: SuiteState) => suiteChecks(state).filter(({ name }) => name === "greedy_repeats")
      const { report } = yield* runSuite(subject, only)
      assert.strictEqual(report.fingerprint_card, "simulated x1")
      assert.strictEqual(report.fingerprints.length, 4)
      for (const { prompt, sha256 } of report.fingerprints) {
        const messages = [{ role: "user", content: prompt }]
        const answer = yield* subject.client.ask("/v1/chat/completions", { model: "acme/fake", messages, temperature: 0, max_tokens: 64 })
        assert.strictEqual(createHash("sha256").update(answer.content).digest("hex"), sha256)
      }
      const other = report.fingerprints.map(({ prompt, sha256 }, at) => ({ prompt, sha256: at === 0 ? "0".repeat(64) : sha256 }))
      const again = yield* runSuite({ ...subject, earlier: [{ fingerprints: other, likelihood: null }] }, only)
      assert.deepStrictEqual([again.report.passed, again.report.drifted], [true, 1])
      assert.match(again.report.checks.find(({ name }) => name === "greedy_repeats")?.detail ?? "", /; 1 of 4 differ from an earlier trial$/)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )

  it.live("keeps no fingerprints of an engine whose answers change under load, and passes it", () =>
    Effect.gen(function* () {
      const { report } = yield* trial("answers vary under load", {}, new Set(["greedy_repeats"]))
      assert.deepStrictEqual([report.fingerprints, report.fingerprint_card], [[], null])
      assert.match(report.checks.find(({ name }) => name === "greedy_repeats")?.detail ?? "", /^alone 4 of 4, stable under load [0-3] of 4$/)
    })
  )

  it.live("an unreachable engine is not a verdict", () =>
    Effect.gen(function* () {
      const subject = yield* subjectAt("http://127.0.0.1:9")
      assert.strictEqual((yield* Effect.flip(runSuite(subject)))._tag, "EngineUnreachable")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("a model without a chat template is checked with completions", () =>
    Effect.map(trial(undefined, { chat: false }), ({ report }) =>
      assert.deepStrictEqual(
        report.checks.filter(({ passed }) => !passed),
        []
      )
    )
  )
})
