import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Hub, HubUnavailable } from "@seatrial/hub"
import { KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { suite } from "@seatrial/trial"
import { Effect, Fiber, Layer, Option, Result } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import type { BootVerdicts } from "../../src/gather/BootVerdicts.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { compareStart } from "../../src/work/compareStart.ts"
import { otherDeployment, pod, podClass, report, revision, run, url } from "../observations.ts"

/** A start to compare. It has `count` recorded fingerprints, and `same` of them belong to the answer "A.". */
const startOf = Effect.fnUntraced(function* (same: number, count: number, paths: ReadonlyArray<string>) {
  const engine = engineFor("reference")
  if (engine === undefined) return yield* Effect.die("no reference engine")
  const files = paths.map((path) => ({ path, size: 1, blob_id: "b".repeat(40), sha256: "a".repeat(64) }))
  const right = createHash("sha256").update("A.").digest("hex")
  const fingerprints = Array.from({ length: count }, (_, at) => ({ prompt: `${at}`, sha256: at < same ? right : "a".repeat(64) }))
  return {
    run,
    revision: { ...revision, facts: { ...revision.facts, files, chat_template: "{{ messages }}" }, checks: { ...report, fingerprints } },
    podClass,
    engine,
    namespace: "n",
    pod,
    url,
    enginePod: undefined,
    node: undefined,
    failedCapability: "withdraw" as const,
    merged: null,
    noReference: null
  }
})

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

/** The engine, whose answer is always `content`. `score`: the log-probability of the next text; absent if it returns none. */
const engineWith = (score?: () => number, content = "A.") => {
  const answer = (path: string) => {
    const logprob = path.endsWith("/v1/completions") ? score?.() : undefined
    const scores = logprob === undefined ? {} : { text: "A.", prompt_logprobs: [null, { "1": { logprob } }] }
    return { choices: [{ message: { content }, ...scores }], usage }
  }
  return Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(answer(request.url)))))
  )
}

/** A hub that is unreachable. */
const away = Layer.mock(Hub)({ readSmall: () => Effect.fail(new HubUnavailable({ message: "Away." })) })

describe("comparing a restarted engine", () => {
  /** All fingerprints differ, or all but one of four, while the hub is unreachable. */
  const compare = Effect.fnUntraced(function* (
    last: boolean,
    same: number,
    count = 4,
    likelihood: ReadonlyArray<ReadonlyArray<number>> | null = [[-1]],
    // The score of each text, by its index; absent if the engine returns none.
    score?: (turn: number) => number,
    paths: ReadonlyArray<string> = ["tokenizer.json"],
    // The restart count of its container.
    restarts = 0,
    suiteVersion: number = suite.version
  ) {
    let scored = 0
    const start = yield* startOf(same, count, paths)
    const bootVerdicts: BootVerdicts = new Map()
    const result = yield* Effect.result(compareStart({ ...start, pod: { ...pod, restarts } }, { bootVerdicts, textTurns: new Map() }, last)).pipe(
      Effect.provide([
        away,
        Layer.mock(KubeClient)({}),
        Layer.mock(Runs)({ likelihood: () => Effect.succeed({ suiteVersion, likelihood }), hubToken: () => Effect.succeed(Option.none()) }),
        engineWith(score && (() => score(scored++)))
      ])
    )
    return [Result.isSuccess(result), bootVerdicts.get(pod.name)?.outcome]
  })

  it.effect("compares texts with one engine of a run at a time, and waits without a time limit for its turn", () =>
    Effect.gen(function* () {
      const hosts = new Set<string>()
      const silent = HttpClient.make((request) => {
        const { host, pathname } = new URL(request.url)
        if (pathname !== "/v1/completions")
          return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json({ choices: [{ message: { content: "A." } }], usage })))
        hosts.add(host)
        return Effect.never
      })
      const start = yield* startOf(0, 4, [])
      const memory = { bootVerdicts: new Map() as BootVerdicts, textTurns: new Map() }
      const engines = [0, 1, 2].map((ordinal) => ({ ...start, url: `http://engine-${ordinal}`, pod: { ...pod, name: enginePodName(run.id, ordinal) } }))
      const foreign = { ...start, url: "http://foreign", run: { ...run, id: otherDeployment }, pod: { ...pod, name: enginePodName(otherDeployment) } }
      const likelihood = () => Effect.succeed({ suiteVersion: suite.version, likelihood: [[-1]] })
      const compared = yield* Effect.forkChild(
        Effect.forEach([...engines, foreign], (each) => Effect.result(compareStart(each, memory, false)), { concurrency: "unbounded" }).pipe(
          Effect.provide([away, Layer.mock(KubeClient)({}), Layer.mock(Runs)({ likelihood }), Layer.succeed(HttpClient.HttpClient, silent)])
        )
      )
      const hostsAfter = Effect.fnUntraced(function* (seconds: number) {
        for (let passed = 0; passed < seconds; passed += 10) yield* TestClock.adjust("10 seconds")
        return [...hosts].sort()
      })
      assert.deepStrictEqual(yield* hostsAfter(20), ["engine-0", "foreign"])
      // An engine that does not answer loses its turn. The last one waits for longer than a comparison may take.
      assert.deepStrictEqual(yield* hostsAfter(20), ["engine-0", "engine-1", "foreign"])
      assert.deepStrictEqual(yield* hostsAfter(40), ["engine-0", "engine-1", "engine-2", "foreign"])
      yield* TestClock.adjust("40 seconds")
      assert.deepStrictEqual((yield* Fiber.join(compared)).map(Result.isFailure), [true, true, true, true])
    })
  )

  it.effect("reads at most 64 KiB of each answer, because the engines of all organizations are compared in the same memory", () =>
    Effect.gen(function* () {
      const start = yield* startOf(4, 4, [])
      const memory = { bootVerdicts: new Map() as BootVerdicts, textTurns: new Map() }
      const failure = yield* Effect.flip(compareStart(start, memory, false)).pipe(
        Effect.provide([away, Layer.mock(KubeClient)({}), Layer.mock(Runs)({}), engineWith(undefined, "A".repeat(65_536))])
      )
      assert.strictEqual(failure.message, "The engine's answer has more than 65536 bytes.")
      assert.strictEqual(memory.bootVerdicts.size, 0)
    })
  )

  it.effect("is decided by its fingerprints if the hub is unreachable at the last attempt", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* compare(false, 0), [false, undefined])
      assert.deepStrictEqual(yield* compare(true, 0), [true, "differs"])
      assert.deepStrictEqual(yield* compare(true, 3), [true, "drifted"])
      assert.deepStrictEqual(yield* compare(false, 4), [true, "same"])
    })
  )

  it.effect("uses the likelihood of texts alone if there are no fingerprints, and fails if the hub is unreachable", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* compare(false, 0, 0), [false, undefined])
      assert.deepStrictEqual(yield* compare(true, 0, 0), [false, undefined])
      assert.deepStrictEqual(yield* compare(false, 0, 0, null), [true, "same"])
    })
  )

  it.effect("includes the likelihood of texts if its container restarted in its pod, even if all fingerprints match", () =>
    Effect.gen(function* () {
      const fingerprints = Array.from({ length: 8 }, () => [-1])
      const sound = (turn: number) => (turn === 8 ? -3 : -1)
      const inPlace = (shift: number, restarts: number, suiteVersion?: number) =>
        compare(false, 4, 4, fingerprints, (turn) => sound(turn) - shift, [], restarts, suiteVersion)
      assert.deepStrictEqual(yield* inPlace(0, 1), [true, "same"])
      // Rounding of a GPU.
      assert.deepStrictEqual(yield* inPlace(0.001, 1), [true, "same"])
      assert.deepStrictEqual(yield* inPlace(0.2, 1), [true, "differs"])
      // In a new pod, an init container has checked its weights first.
      assert.deepStrictEqual(yield* inPlace(0.2, 0), [true, "same"])
      // The recorded likelihoods belong to other texts.
      assert.deepStrictEqual(yield* inPlace(0.2, 1, suite.textsSince - 1), [true, "same"])
    })
  )

  it.effect("is decided by equal fingerprints if the texts could not be compared at the last attempt, or none were recorded", () =>
    Effect.gen(function* () {
      const inPlace = (last: boolean, likelihood: ReadonlyArray<ReadonlyArray<number>> | null = [[-1]]) =>
        compare(last, 4, 4, likelihood, undefined, ["tokenizer.json"], 1)
      assert.deepStrictEqual(yield* inPlace(false), [false, undefined])
      assert.deepStrictEqual(yield* inPlace(true), [true, "same"])
      assert.deepStrictEqual(yield* inPlace(false, null), [true, "same"])
    })
  )

  it.effect("does not read the hub if the tokenizer is unsupported: the texts were sent as they are", () =>
    Effect.gen(function* () {
      const fingerprints = Array.from({ length: 8 }, () => [-1])
      const sound = (turn: number) => (turn === 8 ? -3 : -1)
      for (const paths of [[], ["tekken.json", "tokenizer.json"]]) {
        assert.deepStrictEqual(yield* compare(false, 0, 0, fingerprints, sound, paths), [true, "same"])
        assert.deepStrictEqual(yield* compare(false, 0, 0, fingerprints, (turn) => sound(turn) - 0.2, paths), [true, "differs"])
      }
    })
  )
})
