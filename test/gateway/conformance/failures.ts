import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { answers, chunk, done, errorFrame, finish, opening, openStream, type Script, wholeAnswer } from "../../../packages/gateway/test/fakeEngine.ts"
import { fetched, send, soon } from "../../../packages/gateway/test/stage.ts"
import { useJavaScript } from "./javascriptClients.ts"
import { asks, languages, type Promises, Stage } from "./Stage.ts"

const messages = [{ role: "user", content: "hi" }]
const chat = { model: "acme/able", messages }
const create = "chat.completions.create"

/** Some frames of an answer, then this. */
const breaksBy =
  (end: (call: Parameters<Script>[0]) => void): Script =>
  (call) =>
    openStream(call).write(opening + chunk("a", 1) + chunk("b", 2), () => end(call))

export const promisesOfFailures = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`7 ${language}: if the engine dies during a stream, the client raises APIError with engine_failed, and the record has status 502`, () =>
      Effect.gen(function* () {
        const { ended, play } = yield* Stage
        const calls = play(breaksBy(() => {}))
        const dies = (count: number) => (count === 2 ? calls[0]?.response.destroy() : undefined)
        const { error, items, requestId } = yield* asks(language, { call: create, args: chat, how: "stream", onItem: dies })
        assert.include(error?.family ?? [], "APIError")
        assert.deepInclude(error, { code: "engine_failed", type: "api_error" })
        assert.isAbove(items.length, 0)
        assert.deepInclude(yield* ended(requestId), { state: "completed", status_code: 502, input_tokens: 10, output_tokens: 2, finish_reason: null })
      })
    )

    it.effect(`8 ${language}: if the engine ends a stream without a finish reason, the client raises APIError and reports no success`, () =>
      Effect.gen(function* () {
        const { ended, play } = yield* Stage
        for (const last of ["", done, finish("abort") + done]) {
          play(breaksBy(({ response }) => response.end(last)))
          const { error, requestId } = yield* asks(language, { call: create, args: chat, how: "stream" })
          assert.include(error?.family ?? [], "APIError", last)
          assert.strictEqual(error?.code, "engine_failed", last)
          assert.strictEqual((yield* ended(requestId)).status_code, 502)
        }
      })
    )

    it.effect(`9 ${language}: if the first frame after status 200 is an error, the caller gets the status of that error`, () =>
      Effect.gen(function* () {
        const { play } = yield* Stage
        const cases = [
          [503, "InternalServerError", 503, "model_overloaded"],
          [500, "InternalServerError", 502, "engine_failed"],
          [400, "BadRequestError", 400, "invalid_parameter"]
        ] as const
        for (const [engineCode, kind, status, code] of cases) {
          play((call) => openStream(call).end(errorFrame(engineCode)))
          const { error } = yield* asks(language, { call: create, args: chat, how: "stream" })
          assert.deepInclude(error, { kind, status, code })
          assert.notInclude(error?.message, "secret")
        }
      })
    )

    it.effect(`10 ${language}: a client that disconnects during a stream stops the engine, and the record has the tokens so far`, () =>
      Effect.gen(function* () {
        const { ended, play } = yield* Stage
        const calls = play((call) => openStream(call).write(opening + chunk("a", 1) + chunk("b", 2)))
        const { error, requestId } = yield* asks(language, { call: create, args: chat, how: "stream", leave: 3 })
        assert.isNull(error)
        yield* soon(() => calls[0]?.isCut() === true)
        assert.deepInclude(yield* ended(requestId), { state: "completed", status_code: 499, input_tokens: 10, output_tokens: 2, finish_reason: null })
      })
    )

    it.effect(`11 ${language}: a client that disconnects before an answer stops the engine, and the record says what is estimated`, () =>
      Effect.gen(function* () {
        const { address, ended, key, play, python, records } = yield* Stage
        const before = new Set((yield* records).map(({ id }) => id))
        const calls = play(() => {})
        const controller = new AbortController()
        const use = { client: "openai", address, key, call: create, args: chat } as const
        const { cancel, seen } =
          language === "Python" ? python.cancellable(use) : { cancel: () => controller.abort(), seen: useJavaScript(use, controller.signal) }
        const pending = yield* Effect.forkChild(seen, { startImmediately: true })
        yield* soon(() => calls.length === 1)
        cancel()
        assert.isNotNull((yield* Fiber.join(pending)).error)
        yield* soon(() => calls[0]?.isCut() === true)
        const isNew = ({ id }: { readonly id: string }) => !before.has(id)
        let last = (yield* records).find(isNew)
        while (last === undefined) last = (yield* records).find(isNew)
        const record = yield* ended(last.id)
        assert.deepInclude(record, { state: "completed", status_code: 499, finish_reason: null })
        // The time that the engine worked, at the model's pace: seconds at most, and never as much as the request permits.
        assert.isAtMost(record.output_tokens ?? Number.NaN, 600)
      })
    )

    it.effect(`24 ${language}: a 429 has a Retry-After that the client obeys, and its record says refused`, () =>
      Effect.gen(function* () {
        const { key, play, records, strict } = yield* Stage
        const first = play((call) => openStream(call).write(opening))
        const held = yield* send(strict, { key, body: { ...chat, stream: true } })
        yield* soon(() => first.length === 1)
        const refused = yield* fetched(strict, { key, body: chat })
        assert.deepStrictEqual([refused.status(), refused.headers()["retry-after"]], [429, "1"])
        const { error } = yield* asks(language, { address: strict, call: create, args: chat })
        assert.deepInclude(error, { kind: "RateLimitError", status: 429, code: "key_concurrency_limited" })
        const pending = yield* Effect.forkChild(asks(language, { address: strict, call: create, args: chat, retries: 2 }), { startImmediately: true })
        const isRefused = ({ id, state, status_code }: { readonly id: string; readonly state: string; readonly status_code: number | null }) =>
          state === "refused" && status_code === 429 && id !== refused.headers()["x-request-id"]
        let known = yield* records
        while (known.filter(isRefused).length < 2) known = yield* records
        const calls = play(answers(wholeAnswer("b")))
        first[0]?.response.end(finish("stop") + done)
        yield* soon(() => held.ended === "end")
        assert.isNull((yield* Fiber.join(pending)).error)
        assert.strictEqual(calls.length, 1)
      })
    )

    it.effect(
      `25 ${language}: a burst for a model without engines starts it once, gets Retry-After, and succeeds through the retries of the client once the model is up`,
      () =>
        Effect.gen(function* () {
          const { gazing, play, records, resting } = yield* Stage
          const { start, wakeUps } = resting[language]
          const model = `acme/resting-${language.toLowerCase()}`
          const calls = play(answers(wholeAnswer("a")))
          const use = { address: gazing, call: create, args: { ...chat, model } }
          const beganAt = performance.now()
          const burst = yield* Effect.forkChild(
            Effect.forEach(Array.from({ length: 50 }), () => asks(language, { ...use, retries: 6 }), { concurrency: "unbounded" }),
            { startImmediately: true }
          )
          const isTold = (record: { readonly model: string | null; readonly status_code: number | null }) =>
            record.model === model && record.status_code === 503
          while (!(yield* records).some(isTold)) yield* Effect.yieldNow
          // Once in two seconds, however many ask.
          assert.isAtMost(yield* wakeUps, 1 + Math.floor((performance.now() - beganAt) / 2_000))
          const { error } = yield* asks(language, use)
          assert.deepInclude(error, { kind: "InternalServerError", status: 503, code: "model_starting" })
          yield* start
          for (const seen of yield* Fiber.join(burst)) assert.isNull(seen.error)
          assert.strictEqual(calls.length, 50)
        })
    )

    it.effect(`26 ${language}: a request that timed out is not retried`, () =>
      Effect.gen(function* () {
        const { ended, play, strict } = yield* Stage
        const calls = play(() => {})
        const { error } = yield* asks(language, { address: strict, call: create, args: chat, retries: 2 })
        assert.deepInclude(error, { kind: "InternalServerError", status: 504, code: "engine_timeout" })
        assert.strictEqual(calls.length, 1)
        assert.strictEqual((yield* ended(error?.requestId ?? null)).status_code, 504)
      })
    )

    it.effect(`27 ${language}: a wrong key, a key without the scope and a model of another organization raise different error classes`, () =>
      Effect.gen(function* () {
        const { address, key, otherKey, play, reader } = yield* Stage
        const calls = play(answers(wholeAnswer("a")))
        const fault = (use: object) => Effect.map(asks(language, { call: create, args: chat, ...use }), ({ error }) => error)
        assert.deepInclude(yield* fault({ key: "seatrial_wrong" }), { kind: "AuthenticationError", status: 401, code: "invalid_api_key" })
        assert.deepInclude(yield* fault({ key: reader }), { kind: "PermissionDeniedError", status: 403, code: "missing_scope" })
        const theirs = yield* fault({ key: otherKey })
        const none = yield* fault({ args: { ...chat, model: "acme/none" } })
        assert.deepInclude(theirs, { kind: "NotFoundError", status: 404, code: "model_not_found" })
        const texts = [yield* fetched(address, { key: otherKey, body: chat }), yield* fetched(address, { key, body: { ...chat, model: "acme/nine" } })].map(
          (seen) =>
            seen
              .text()
              .replace(/req_\w+/, "")
              .replace("nine", "able")
        )
        assert.strictEqual(texts[0], texts[1])
        assert.strictEqual(none?.status, 404)
        assert.strictEqual(calls.length, 0)
      })
    )
  }
}
