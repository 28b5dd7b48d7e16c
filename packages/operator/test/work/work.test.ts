import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Hub, HubRefusal, HubUnavailable, RefusalReason } from "@seatrial/hub"
import { KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { ProcessEnded } from "@seatrial/trial"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Ref, Scope } from "effect"
import { HttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { mergedFault } from "../../src/work/askMerged.ts"
import { makeBackground } from "../../src/work/Background.ts"
import { screenRepository } from "../../src/work/screenRepository.ts"
import { startWork } from "../../src/work/startWork.ts"
import { WorkRefused, WorkUnavailable } from "../../src/work/WorkResult.ts"
import { deploymentId, hostClass, observationOf, pod, podClass, revision, run } from "../observations.ts"

describe("the merged model", () => {
  it("is broken if its engine breaks on valid requests twice; the operator is not at fault", () => {
    const broken = { detail: "HTTP 500 for a good request", status: 500 }
    const first = mergedFault(broken)
    if (!(first instanceof WorkUnavailable)) return assert.fail(first.failure.text)
    assert.isTrue(first.isEngineError)
    const second = mergedFault(broken, first.isEngineError)
    if (!(second instanceof WorkRefused)) return assert.fail(second.message)
    assert.strictEqual(second.failure.code, "output_garbage")
    assert.include(second.failure.text, "HTTP 500 for a good request, reproduced on two attempts")
    for (const [fault, wasEngineError] of [
      [broken, false],
      [{ detail: "HTTP 429 for a good request", status: 429 }, true],
      [{ detail: "HTTP 500 as text only" }, true]
    ] as const)
      assert.instanceOf(mergedFault(fault, wasEngineError), WorkUnavailable)
  })
})

describe("background work", () => {
  const backgroundWithReports = Effect.gen(function* () {
    const count = yield* Ref.make(0)
    return { count, background: yield* makeBackground(() => Ref.update(count, (n) => n + 1)) }
  })

  it.effect("says that a repository's tokenizer or template ended its reader, and calls other defects internal errors", () =>
    Effect.gen(function* () {
      const { background } = yield* backgroundWithReports
      const message = "The repository's tokenizer or chat template could not be read or rendered within its limits (SIGABRT)."
      for (const [defect, said] of [
        [new ProcessEnded({ message, fromOutside: false, part: "chat template" }), message],
        [new Error("secret"), "An internal error."]
      ] as const) {
        yield* background.want(deploymentId, [{ kind: "checking", about: "1", with: "pod-1", start: Effect.die(defect) }])
        yield* Effect.yieldNow
        assert.strictEqual((yield* background.state(deploymentId)).ended?.message, said)
      }
    })
  )

  it.effect("blames a repository only if its tokenizer or template exceeded the limits of the process at each attempt", () =>
    Effect.gen(function* () {
      const { background } = yield* backgroundWithReports
      const ended = (part: ProcessEnded["part"]) => new ProcessEnded({ message: "Too much.", fromOutside: part === null, part })
      const tries = Effect.fnUntraced(function* (about: string, defects: ReadonlyArray<ProcessEnded>) {
        for (const defect of defects) {
          yield* background.want(deploymentId, [{ kind: "checking", about, with: "pod-1", start: Effect.die(defect) }])
          yield* Effect.yieldNow
        }
        return (yield* background.state(deploymentId)).ended
      })
      const template = ended("chat template")
      assert.deepInclude(yield* tries("1", [template, ended("tokenizer"), template]), { attempts: 3, byRepository: true })
      assert.deepInclude(yield* tries("2", [template, ended(null), template]), { attempts: 3, byRepository: false })
      assert.deepInclude(yield* tries("3", [ended(null), template, template]), { attempts: 3, byRepository: false })
    })
  )

  it.effect("runs once for a run however often it is requested, and reports its end", () =>
    Effect.gen(function* () {
      const { background, count } = yield* backgroundWithReports
      const starts = yield* Ref.make(0)
      const gate = yield* Deferred.make<void>()
      const work = Effect.andThen(
        Ref.update(starts, (n) => n + 1),
        Deferred.await(gate)
      )
      yield* background.want(deploymentId, [{ kind: "checking", about: "1", with: "pod-1", start: work }])
      yield* background.want(deploymentId, [{ kind: "checking", about: "1", with: "pod-1", start: work }])
      assert.deepStrictEqual(yield* background.state(deploymentId), { running: "checking", with: "pod-1", ended: null })
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.yieldNow
      assert.deepStrictEqual([yield* Ref.get(starts), yield* Ref.get(count)], [1, 1])
      assert.deepStrictEqual(yield* background.state(deploymentId), { running: null, with: "pod-1", ended: null })
    })
  )

  it.effect("counts its failures for the phase, and forgets them with the next kind", () =>
    Effect.gen(function* () {
      const { background } = yield* backgroundWithReports
      const away = Effect.fail(new WorkUnavailable({ message: "Away." }))
      yield* TestClock.adjust("5 seconds")
      for (let attempt = 1; attempt <= 2; attempt++) {
        yield* background.want(deploymentId, [{ kind: "checking", about: "1", with: "pod-1", start: away }])
        yield* Effect.yieldNow
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual((yield* background.state(deploymentId)).ended, {
        kind: "checking",
        about: "1",
        attempts: 2,
        at: 6_000,
        since: 5_000,
        failure: null,
        message: "Away.",
        byRepository: false
      })
      // Another stay in the phase has its own attempts.
      yield* background.want(deploymentId, [{ kind: "checking", about: "2", with: "pod-1", start: away }])
      yield* Effect.yieldNow
      assert.deepInclude((yield* background.state(deploymentId)).ended, { about: "2", attempts: 1 })
      const refused = Effect.fail(new WorkRefused({ failure: { code: "does_not_fit", text: "No." } }))
      yield* background.want(deploymentId, [{ kind: "measuring", about: "1", with: "pod-1", start: refused }])
      yield* Effect.yieldNow
      assert.deepInclude((yield* background.state(deploymentId)).ended, { kind: "measuring", attempts: 1, failure: { code: "does_not_fit", text: "No." } })
    })
  )

  it.effect("is interrupted at once when it is no longer wanted", () =>
    Effect.gen(function* () {
      const { background, count } = yield* backgroundWithReports
      const stopped = yield* Ref.make(false)
      const work = Effect.onInterrupt(Effect.never, () => Ref.set(stopped, true))
      yield* background.want(deploymentId, [{ kind: "benchmarking", about: "1", with: "pod-1", start: work }])
      yield* background.want(deploymentId, [])
      assert.isTrue(yield* Ref.get(stopped))
      assert.deepStrictEqual(yield* background.state(deploymentId), { running: null, with: "pod-1", ended: null })
      assert.strictEqual(yield* Ref.get(count), 0)
    })
  )

  it.effect("that something else interrupts has failed, and its end is reported", () =>
    Effect.gen(function* () {
      const { background, count } = yield* backgroundWithReports
      const of = { kind: "checking", about: "1", with: "pod-1" } as const
      yield* background.want(deploymentId, [{ ...of, start: Effect.interrupt }])
      yield* Effect.yieldNow
      assert.strictEqual(yield* Ref.get(count), 1)
      const { ended, running } = yield* background.state(deploymentId)
      assert.deepStrictEqual([running, ended?.kind, ended?.attempts, ended?.failure], [null, "checking", 1, null])
      // It can be done again.
      yield* background.want(deploymentId, [{ ...of, start: Effect.void }])
      yield* Effect.yieldNow
      assert.strictEqual(yield* Ref.get(count), 2)
    })
  )

  it.effect("that ends with its operator, or with its run, has not failed and is not reported", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { background, count } = yield* Scope.provide(backgroundWithReports, scope)
      const of = { kind: "checking", about: "1", with: "pod-1" } as const
      yield* background.want(deploymentId, [{ ...of, start: Effect.never }])
      yield* background.forget(deploymentId)
      yield* background.want(deploymentId, [{ ...of, start: Effect.never }])
      yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* Ref.get(count), 0)
    })
  )

  it.effect("begins again if the engine has restarted, which does not count as an attempt", () =>
    Effect.gen(function* () {
      const { background } = yield* backgroundWithReports
      const log = yield* Ref.make<ReadonlyArray<string>>([])
      const note = (entry: string) => Ref.update(log, (entries) => [...entries, entry])
      const work = Effect.onInterrupt(Effect.andThen(note("begun"), Effect.never), () => note("ended"))
      for (const start of ["pod-1 0", "pod-1 0", "pod-1 1"]) {
        yield* background.want(deploymentId, [{ kind: "checking", about: "1", with: start, start: work }])
        yield* Effect.yieldNow
      }
      assert.deepStrictEqual(yield* Ref.get(log), ["begun", "ended", "begun"])
      assert.deepStrictEqual(yield* background.state(deploymentId), { running: "checking", with: "pod-1 1", ended: null })
    })
  )

  it.effect("runs with several engines of a run at once, and ends only with those that no longer need it", () =>
    Effect.gen(function* () {
      const { background, count } = yield* backgroundWithReports
      const log = yield* Ref.make<ReadonlyArray<string>>([])
      const gate = yield* Deferred.make<void>()
      const note = (entry: string) => Ref.update(log, (entries) => [...entries, entry])
      const comparison = (ordinal: number) => {
        const start = Effect.onInterrupt(Effect.andThen(note(`begun ${ordinal}`), Deferred.await(gate)), () => note(`stopped ${ordinal}`))
        return { ordinal, kind: "boot" as const, about: `pod-${ordinal} 0`, with: `pod-${ordinal}`, start }
      }
      yield* background.want(deploymentId, [comparison(1), comparison(2), comparison(5)])
      yield* Effect.yieldNow
      yield* background.want(deploymentId, [comparison(1), comparison(5)])
      assert.deepStrictEqual(yield* Ref.get(log), ["begun 1", "begun 2", "begun 5", "stopped 2"])
      const running = Effect.forEach([0, 1, 2, 5], (ordinal) => Effect.map(background.state(deploymentId, ordinal), (state) => state.running))
      assert.deepStrictEqual(yield* running, [null, "boot", null, "boot"])
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.yieldNow
      assert.deepStrictEqual([yield* running, yield* Ref.get(count)], [[null, null, null, null], 2])
      const endless = (ordinal: number) => ({ ...comparison(ordinal), start: Effect.onInterrupt(Effect.never, () => note(`forgotten ${ordinal}`)) })
      yield* background.want(deploymentId, [endless(1), endless(2)])
      yield* background.forget(deploymentId)
      assert.deepStrictEqual((yield* Ref.get(log)).slice(4), ["forgotten 1", "forgotten 2"])
      assert.isFalse(background.remembers(deploymentId))
    })
  )

  it.effect("that dies is an internal error, not a result", () =>
    Effect.gen(function* () {
      const { background } = yield* backgroundWithReports
      yield* background.want(deploymentId, [{ kind: "checking", about: "1", with: "pod-1", start: Effect.die("boom") }])
      yield* Effect.yieldNow
      assert.deepInclude((yield* background.state(deploymentId)).ended, { failure: null, message: "An internal error." })
    })
  )
})

describe("check suites", () => {
  it.effect("do not wait for each other: one tokenizer is read at a time, and slow checks delay no other suite", () =>
    Effect.gen(function* () {
      const [begun, reading] = [yield* Ref.make(0), yield* Ref.make(0)]
      const engine = engineFor("reference")
      if (engine === undefined) return yield* Effect.die("no reference engine")
      const start = startWork({ failedCapability: "withdraw", fetchImage: "seatrial:1", namespace: "n", pullSecrets: [], weightsClaim: "weights" })
      const seenNow = observationOf("checking", { pod })
      const gathered = {
        run: seenNow.run,
        resource: null,
        podClass,
        hostClasses: [],
        pods: [],
        node: undefined,
        otherNodes: new Map(),
        leastReady: 1,
        copiesInUse: null,
        earlierEngines: 0,
        merged: "none" as const,
        mergedAnswers: new Map(),
        heldReports: new Map(),
        bootVerdicts: new Map(),
        textTurns: new Map(),
        observe: () => seenNow
      }
      const gate = yield* Deferred.make<void>()
      const readSmall = () =>
        Effect.andThen(
          Ref.update(reading, (n) => n + 1),
          Effect.as(Deferred.await(gate), new Map<string, Uint8Array>())
        )
      // The request of a suite after it has read its repository. It never gets a response.
      const earlierTrials = () =>
        Effect.andThen(
          Ref.update(begun, (n) => n + 1),
          Effect.never
        )
      const suites = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 6 }), () => Effect.exit(start(gathered, seenNow, "checking")), { concurrency: "unbounded" }).pipe(
          Effect.provide([
            Layer.mock(Hub)({ readSmall }),
            Layer.mock(KubeClient)({ list: () => Effect.succeed([]) }),
            Layer.mock(Runs)({ hubToken: () => Effect.succeed(Option.none()), earlierTrials }),
            Layer.succeed(
              HttpClient.HttpClient,
              HttpClient.make(() => Effect.never)
            )
          ])
        )
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([yield* Ref.get(reading), yield* Ref.get(begun)], [1, 0])
      yield* Deferred.succeed(gate, undefined)
      // One after another.
      for (let turn = 0; turn < 20; turn++) yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([yield* Ref.get(reading), yield* Ref.get(begun)], [6, 6])
      yield* Fiber.interrupt(suites)
    })
  )
})

describe("screening", () => {
  type Recorded = Parameters<Runs["Service"]["recordScreening"]>[0]
  const screen = (
    inspect: Hub["Service"]["inspect"],
    recorded: Ref.Ref<Option.Option<Recorded>>,
    faults = 0,
    { hostClasses = [hostClass], ...given }: Partial<typeof run> & { readonly hostClasses?: ReadonlyArray<typeof hostClass> } = {}
  ) => {
    let left = faults
    return screenRepository({ ...run, ...given }, hostClasses).pipe(
      Effect.provide([
        Layer.mock(Hub)({ inspect }),
        Layer.mock(Runs)({
          hubToken: () => Effect.succeed(Option.none()),
          measuredStarts: () => Effect.succeed([]),
          recordScreening: (input) =>
            Effect.suspend(() => (left-- > 0 ? Effect.die("the database is away") : Effect.as(Ref.set(recorded, Option.some(input)), true)))
        })
      ])
    )
  }
  const nothing = Ref.make(Option.none<Recorded>())

  it.effect("records the pinned facts, the chosen settings, and the engine", () =>
    Effect.gen(function* () {
      const recorded = yield* nothing
      yield* screen(() => Effect.succeed({ ...revision.facts, chat_template: "{{ messages }}" }), recorded)
      const input = Option.getOrThrow(yield* Ref.get(recorded))
      assert.deepInclude(input.settings, { runtime: "reference", host_class: "local" })
      assert.strictEqual(input.engineVersion, engineFor("reference")?.version)
      assert.strictEqual(input.engineImage, "reference:1")
      assert.strictEqual(input.facts.commit, revision.facts.commit)
      assert.deepStrictEqual(input.capabilities.supported_endpoints, [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens"
      ])
    })
  )

  it.effect("records who chose each setting, including those that a redeploy keeps", () =>
    Effect.gen(function* () {
      const recorded = yield* nothing
      const servingRequest = { runtime: "reference", host_class: "local" } as const
      yield* screen(() => Effect.succeed(revision.facts), recorded, 0, { servingRequest, keptChoices: { host_class: "fit" } })
      const { estimate } = Option.getOrThrow(yield* Ref.get(recorded))
      for (const [name, chooser] of Object.entries({ runtime: "request", host_class: "fit", max_context: "fit", kv_cache_dtype: "default" }))
        assert.nestedPropertyVal(estimate, `chosen_by.${name}`, chooser)
    })
  )

  it.effect("chooses a host class within the organization's GPU limit; if there is none, the run may wait for a higher limit", () =>
    Effect.gen(function* () {
      const wide = { ...hostClass, name: "wide", gpu_count: 2, price_per_gpu_hour_micros: "0" }
      for (const [gpuLimit, expected] of [
        [null, "wide"],
        [1, "local"],
        [0, "wide"]
      ] as const) {
        const recorded = yield* nothing
        yield* screen(() => Effect.succeed(revision.facts), recorded, 0, { gpuLimit, hostClasses: [wide, hostClass] })
        assert.strictEqual(Option.getOrThrow(yield* Ref.get(recorded)).settings.host_class, expected)
      }
    })
  )

  it.effect("continues after the database was unavailable", () =>
    Effect.gen(function* () {
      const recorded = yield* nothing
      const fibre = yield* Effect.forkChild(screen(() => Effect.succeed(revision.facts), recorded, 6))
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Option.isSome(yield* Ref.get(recorded)))
      assert.isDefined(fibre.pollUnsafe())
    })
  )

  const refusals: ReadonlyArray<readonly [promise: string, inspect: Hub["Service"]["inspect"], code: string]> = [
    [
      "passes the hub's refusal on, with its remedy",
      () => Effect.fail(new HubRefusal({ reason: RefusalReason.RemoteCode({ file: "config.json" }), commit: null })),
      "remote_code_required: config.json asks for Python from the repository (auto_map), which is never run. Choose a repository whose architecture and tokenizer the engines support without its code, such as the same model converted to Transformers."
    ],
    [
      "refuses what fits no host class as a preview does",
      () => Effect.succeed({ ...revision.facts, weights_bytes: 2 ** 40 }),
      "does_not_fit: 1024.0 GiB of weights do not fit any host class (the largest has 1.0 GiB). Choose a smaller or a quantized model, or ask the cluster administrator for a larger host class."
    ]
  ]
  for (const [promise, inspect, expected] of refusals) {
    it.effect(promise, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(screen(inspect, yield* nothing))
        assert.strictEqual(error._tag === "WorkRefused" ? `${error.failure.code}: ${error.failure.text}` : error._tag, expected)
      })
    )
  }

  it.effect("retries later if the hub is unreachable", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(screen(() => Effect.fail(new HubUnavailable({ message: "Away." })), yield* nothing))
      assert.strictEqual(error._tag, "WorkUnavailable")
    })
  )
})
