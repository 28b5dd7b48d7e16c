import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import type { Conversing } from "../../src/suite/OwnTemplate.ts"
import type { PinnedSource } from "../../src/suite/pinnedQuestions.ts"
import { ProcessEnded, readPinned } from "../../src/suite/readPinned.ts"

/** A tokenizer of letters, and of so many pairs of them that were merged. */
const tokenizerOf = (merged: number, config = "{}"): PinnedSource["tokenizer"] => {
  const letters = Array.from({ length: 256 }, (_, at) => String.fromCodePoint(0x4e00 + at))
  const merges = Array.from({ length: merged }, (_, at) => [letters[at % 256] ?? "", letters[Math.floor(at / 256)] ?? ""] as const)
  const vocab = Object.fromEntries(["a", ...letters, ...merges.map((pair) => pair.join(""))].map((token, id) => [token, id]))
  const parts = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, added_tokens: [] }
  return { file: Buffer.from(JSON.stringify({ ...parts, model: { type: "BPE", vocab, merges } })), config }
}
const templateOf = (text: string): PinnedSource["template"] => ({ text, tokens: { bos_token: "<s>", eos_token: "</s>" } })

const falling = { url: new URL("../suite/fallingProcess.ts", import.meta.url) }
const refusing = "{% if not messages %}{{ raise_exception('nothing was said') }}{% endif %}{{ bos_token }}{{ messages[0].content }}{{ more }}"
const hello: Conversing = { messages: [{ role: "user", content: "Hello" }] }

describe("a commit's tokenizer and template", () => {
  it.live("are read in another process: the thread of the caller is not blocked", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const reading = yield* Effect.forkChild(
        Effect.tap(readPinned({ tokenizer: tokenizerOf(20_000), template: templateOf(refusing) }), () => Effect.sync(() => log.push("read"))),
        { startImmediately: true }
      )
      log.push("another goes on")
      const { template, tokenizer } = yield* Fiber.join(reading)
      assert.deepStrictEqual(log, ["another goes on", "read"])
      if (template === null || tokenizer === null) return assert.fail("they are not read")
      assert.strictEqual(tokenizer.vocabulary, 20_257)
      const texts = ["a", "一一", "丁一a"]
      const ids = yield* tokenizer.encode(texts, false)
      assert.deepStrictEqual(ids, [[0], [257], [258, 0]])
      assert.deepStrictEqual(yield* tokenizer.decode([[257, 0], [258]]), ["一一 a", "丁一"])
      assert.deepStrictEqual(yield* tokenizer.find(["a", "b"]), [0, null])
      assert.deepStrictEqual(yield* template.render([hello, { messages: [] }, { ...hello, extra: { more: "!" } }]), ["<s>Hello", null, "<s>Hello!"])
    })
  )

  it.live("that never finish block neither other work, nor another commit, nor an interruption", () =>
    Effect.gen(function* () {
      const asking = yield* Deferred.make<void>()
      const endless = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"
      const rendering = yield* Effect.gen(function* () {
        const { template } = yield* readPinned({ tokenizer: null, template: templateOf(endless) })
        yield* Deferred.succeed(asking, undefined)
        return yield* template?.render([hello]) ?? Effect.void
      }).pipe(Effect.scoped, Effect.forkChild({ startImmediately: true }))
      const { template } = yield* readPinned({ tokenizer: null, template: templateOf("{{ messages[0].content }}") })
      assert.deepStrictEqual(yield* template?.render([hello]) ?? Effect.succeed([]), ["Hello"])
      yield* Deferred.await(asking)
      yield* Fiber.interrupt(rendering)
      const exit = yield* Fiber.await(rendering)
      assert.isTrue(Exit.hasInterrupts(exit))
    })
  )

  it.live("are null without readable files, and the end of a process fails only its own questions", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* readPinned({ tokenizer: null, template: null }), { tokenizer: null, template: null })
      const broken = yield* readPinned({ tokenizer: { file: Buffer.from('{"model":'), config: "{}" }, template: templateOf("{% if %}") })
      assert.deepStrictEqual(broken, { tokenizer: null, template: null })

      const without = yield* readPinned({ tokenizer: tokenizerOf(1, "fall"), template: templateOf("{{ bos_token }}") }, falling)
      assert.isNull(without.tokenizer)
      assert.deepStrictEqual(yield* without.template?.render([hello]) ?? Effect.succeed([]), ["<s>"])

      const { tokenizer } = yield* readPinned({ tokenizer: tokenizerOf(1), template: null }, falling)
      if (tokenizer === null) return assert.fail("it is not read")
      const exits = yield* Effect.forEach(["a", "fall", "a"], (text) => Effect.exit(tokenizer.encode([text], false)))
      assert.deepStrictEqual(
        exits.map((exit) => (Exit.isSuccess(exit) ? exit.value : Exit.hasDies(exit))),
        [[[0]], true, true]
      )
      const again = yield* readPinned({ tokenizer: tokenizerOf(1), template: null }, falling)
      assert.deepStrictEqual(yield* again.tokenizer?.encode(["a"], false) ?? Effect.succeed([]), [[0]])
    })
  )

  it.live("are reported if they exceed the limits of the process, but not if it was ended from outside", () =>
    Effect.gen(function* () {
      const failureAfter = Effect.fnUntraced(function* (text: string) {
        const { tokenizer } = yield* readPinned({ tokenizer: tokenizerOf(1), template: null }, falling)
        const exit = yield* Effect.exit(tokenizer?.encode([text], false) ?? Effect.void)
        const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : null
        return defect instanceof ProcessEnded ? ([defect.part, defect.message] as const) : ([null, `${defect}`] as const)
      }, Effect.scoped)
      const limits = "The repository's tokenizer could not be asked within the limits of its process, such as 384 MB of memory"
      assert.deepStrictEqual(
        [yield* failureAfter("fall"), yield* failureAfter("SIGABRT")],
        [
          ["tokenizer", `${limits} (1).`],
          ["tokenizer", `${limits} (SIGABRT).`]
        ]
      )
      const [part, killed] = yield* failureAfter("SIGKILL")
      assert.isNull(part)
      assert.include(killed, "ended from outside (SIGKILL)")
      assert.notInclude(killed, limits)
    })
  )

  it.live("are reported for the current question of the process, even if its caller was interrupted", () =>
    Effect.gen(function* () {
      const { template, tokenizer } = yield* readPinned({ tokenizer: tokenizerOf(1), template: templateOf("{{ messages[0].content }}") }, falling)
      if (template === null || tokenizer === null) return assert.fail("they are not read")
      const left = yield* Effect.forkChild(template.render([{ messages: [{ role: "user", content: "SIGABRT" }] }]), { startImmediately: true })
      yield* Fiber.interrupt(left)
      const exit = yield* Effect.exit(tokenizer.encode(["a"], false))
      const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : null
      if (!(defect instanceof ProcessEnded)) return assert.fail(`${defect}`)
      assert.deepInclude(defect, { part: "chat template", fromOutside: false })
      assert.strictEqual(
        defect.message,
        "The repository's chat template could not be rendered within the limits of its process, such as 384 MB of memory (SIGABRT)."
      )
    }).pipe(Effect.scoped)
  )

  it.live("are not reported if the process ended before it had read anything", () =>
    Effect.gen(function* () {
      const absent = { url: new URL("../suite/absentProcess.ts", import.meta.url) }
      const exit = yield* Effect.exit(Effect.scoped(readPinned({ tokenizer: null, template: templateOf("{{ bos_token }}") }, absent)))
      const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : null
      assert.deepInclude(defect, { part: null })
    })
  )

  it.live("are read again if the process was ended from outside while it read them", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-pinned-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true }))
      )
      const noting = { ...falling, permissions: [`--allow-fs-read=${folder}`, `--allow-fs-read=${folder}/*`, `--allow-fs-write=${folder}/*`] }
      const killed = (path: string) => tokenizerOf(1, JSON.stringify({ killed: path }))
      const once = yield* readPinned({ tokenizer: killed(join(folder, "once")), template: null }, noting)
      assert.deepStrictEqual(yield* once.tokenizer?.encode(["a"], false) ?? Effect.succeed([]), [[0]])
      const always = yield* readPinned({ tokenizer: killed(folder), template: templateOf("{{ bos_token }}") }, noting)
      assert.isNull(always.tokenizer)
      assert.deepStrictEqual(yield* always.template?.render([hello]) ?? Effect.succeed([]), ["<s>"])
    }).pipe(Effect.scoped)
  )

  it.live("cannot reach the environment, a file, a process, a thread, an addon or a connection", () =>
    Effect.gen(function* () {
      const secret = "SEATRIAL_TEST_SECRET"
      yield* Effect.acquireRelease(
        Effect.sync(() => Object.assign(process.env, { [secret]: "hidden", NODE_OPTIONS: "--no-deprecation" })),
        () =>
          Effect.sync(() => {
            delete process.env[secret]
            delete process.env.NODE_OPTIONS
          })
      )
      const program = { url: new URL("../suite/escapingProcess.ts", import.meta.url) }
      const { tokenizer } = yield* readPinned({ tokenizer: tokenizerOf(1), template: null }, program)
      // Node names the channel to its parent in the environment, and removes it as it starts.
      assert.deepStrictEqual(tokenizer?.special, [])
    }).pipe(Effect.scoped)
  )

  it.live("are available for the lifetime of the scope, and their process ends with it", () =>
    Effect.gen(function* () {
      const pid = yield* Effect.scoped(
        Effect.map(readPinned({ tokenizer: tokenizerOf(1), template: null }, falling), ({ tokenizer }) => Number(tokenizer?.special[0]))
      )
      assert.isAbove(pid, 0)
      const runs = () => {
        try {
          return process.kill(pid, 0)
        } catch {
          return false
        }
      }
      while (runs()) yield* Effect.sleep("5 millis")
    })
  )
})
