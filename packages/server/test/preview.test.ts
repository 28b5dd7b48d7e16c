import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { HostClass } from "@seatrial/domain"
import { HubRefusal, HubUnavailable, RefusalReason } from "@seatrial/hub"
import { Billing, HostClasses, HubConnections } from "@seatrial/store"
import { Effect, Option, Redacted, Ref, Schema } from "effect"
import { type HubAnswers, jsonOf, layerStage, makeTenant, Stage, tinyFacts } from "./stage.ts"

const hostClass = (name: string, gib: number, price: string): HostClass => ({
  name,
  runtimes: [{ runtime: "reference", image: "reference" }],
  gpu_pool: `simulated-${name}`,
  gpu_count: 1,
  gpu_memory_bytes: gib * 2 ** 30,
  price_per_gpu_hour_micros: price,
  simulated: true
})
const small = hostClass("small", 1, "100")
const large = hostClass("large", 8, "900")

const source = { kind: "model_hub", repo: "seatrial/tiny-chat" }

const preview = Effect.fnUntraced(function* (key: string, body: unknown) {
  const { call } = yield* Stage
  return yield* call("POST", "/v1/deployment-previews", { key, body })
})

const withHub = Effect.fnUntraced(function* (answers: HubAnswers, classes: ReadonlyArray<HostClass> = [small, large]) {
  yield* Ref.set((yield* Stage).hub, answers)
  yield* (yield* HostClasses).replaceAll(classes)
})

const Derived = Schema.Struct({ kind: Schema.Literal("derived"), serving: Schema.Json })

layer(layerStage(), { excludeTestServices: true })("a preview over HTTP", (it) => {
  it.effect("describes completely how a model would be served, and creates nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.succeed(tinyFacts))
      const answer = yield* preview(key, { source: { ...source, ref: "main" } })
      assert.strictEqual(answer.status, 200)
      const body = jsonOf(answer)
      assert.deepInclude(body, {
        object: "deployment_preview",
        kind: "derived",
        source: { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main", commit: tinyFacts.commit },
        architecture: "LlamaForCausalLM",
        weights_bytes: 1_000_000
      })
      assert.deepNestedInclude(body, { "serving.host_class": "small", "serving.runtime": "reference", "serving.max_context": 1024, "fit.verdict": "fits" })
      assert.deepNestedInclude(body, { "alternatives[0].host_class": "large" })
      assert.deepInclude(jsonOf(yield* call("GET", "/v1/deployments", { key })), { data: [] })
    })
  )

  it.effect("returns settings that a create and another preview accept as is", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.succeed(tinyFacts))
      const requested = { host_class: "large", max_context: 512, hold_seconds: 5, engine_flags: { max_num_seqs: 4 } }
      const { serving } = Schema.decodeUnknownSync(Derived)(jsonOf(yield* preview(key, { source, serving: requested })))
      const again = Schema.decodeUnknownSync(Derived)(jsonOf(yield* preview(key, { source, serving })))
      assert.deepStrictEqual(again.serving, serving)
      const created = yield* call("POST", "/v1/deployments", { key, body: { source, serving }, headers: { "idempotency-key": "paste" } })
      assert.strictEqual(created.status, 201)
    })
  )

  it.effect("says where GPUs are free, and what a deployment would wait for", () =>
    Effect.gen(function* () {
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.succeed(tinyFacts))
      const unknown = yield* preview(key, { source })
      assert.deepNestedInclude(jsonOf(unknown), { "placement.host_classes": [], "placement.message": null })
      const hostClasses = yield* HostClasses
      const room = (gpus: number, free: number) => ({ gpus, free_gpus: free, free_engines: free })
      yield* hostClasses.recordCapacities(
        new Map([
          ["small", room(8, 0)],
          ["large", room(4, 4)]
        ])
      )
      const waits = "A deployment would wait for GPUs of class small (0 of 8 free)."
      const hint =
        " Host class large has 4 free GPUs, and the model fits there. To use this class, deploy with `host_class: [small, large]` or `host_class: any`."
      const cases: ReadonlyArray<readonly [serving: object, host: string, message: string | null]> = [
        [{}, "small", `${waits}${hint}`],
        [{ host_class: "small" }, "small", `${waits}${hint}`],
        [{ host_class: ["small"] }, "small", `${waits}${hint}`],
        [{ host_class: ["small", "large"] }, "large", null],
        [{ host_class: "any" }, "large", null],
        [{ host_class: "large" }, "large", null]
      ]
      for (const [serving, host, message] of cases) {
        const body = jsonOf(yield* preview(key, { source, serving }))
        assert.deepNestedInclude(body, { "serving.host_class": host, "fit.host_class": host, "placement.message": message }, JSON.stringify(serving))
      }
      yield* hostClasses.recordCapacities(new Map([["large", room(4, 0)]]))
      assert.deepNestedInclude(jsonOf(yield* preview(key, { source, serving: { host_class: ["large", "small"] } })), {
        "serving.host_class": "large",
        "placement.message": "A deployment would wait for GPUs of class large (0 of 4 free), small (0 of 8 free)."
      })
      const missing = jsonOf(yield* preview(key, { source, serving: { host_class: ["small", "none"] } }))
      assert.deepNestedInclude(missing, { kind: "refused", "reason.code": "host_class_unknown", "reason.message": "There is no host class none." })
    })
  )

  it.effect("takes one host class, a list of different ones, or any, and names what is wrong with another", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.succeed(tinyFacts))
      const list = "must list 1 to 16 host classes"
      const cases: ReadonlyArray<readonly [choice: unknown, param: string, message: string]> = [
        [[], "serving.host_class", list],
        [Array.from({ length: 17 }, (_, index) => `c${index}`), "serving.host_class", list],
        [["small", "small"], "serving.host_class", "must list each host class once"],
        [["small", "Large"], "serving.host_class[1]", "must be the name of a host class"],
        ["Large", "serving.host_class", "must be the name of a host class"],
        [7, "serving.host_class", "must be string or array"],
        [null, "serving.host_class", "must be string or array"],
        [{ name: "small" }, "serving.host_class", "must be string or array"]
      ]
      for (const [choice, param, message] of cases) {
        for (const path of ["/v1/deployment-previews", "/v1/deployments"]) {
          const answer = yield* call("POST", path, { key, body: { source, serving: { host_class: choice } }, headers: { "idempotency-key": "wrong" } })
          assert.strictEqual(answer.status, 400, JSON.stringify(choice))
          assert.deepNestedInclude(jsonOf(answer), { "error.param": param }, JSON.stringify(choice))
          assert.include(JSON.stringify(jsonOf(answer)), message)
        }
      }
      const create = (choice: unknown, idempotencyKey: string) =>
        call("POST", "/v1/deployments", {
          key,
          body: { source, model_name: "m1", serving: { host_class: choice } },
          headers: { "idempotency-key": idempotencyKey }
        })
      const refused = yield* create(["small", "none"], "unknown")
      assert.strictEqual(refused.status, 422)
      assert.deepNestedInclude(jsonOf(refused), { "error.code": "host_class_unknown", "error.param": "serving.host_class" })
      const statuses = []
      for (const [choice, idempotencyKey] of [
        [["small"], "one"],
        ["small", "one"],
        [["small", "large"], "one"]
      ] as const)
        statuses.push((yield* create(choice, idempotencyKey)).status)
      assert.deepStrictEqual(statuses, [201, 200, 409], "a list of one class is that class; another choice is another input")
      const listed = yield* call("POST", "/v1/deployments", {
        key,
        body: { source, model_name: "m2", serving: { host_class: ["large", "small"] } },
        headers: { "idempotency-key": "listed" }
      })
      assert.strictEqual(listed.status, 201)
      const sql = yield* PgClient.PgClient
      assert.deepStrictEqual(yield* sql`SELECT serving FROM deployments d JOIN models m ON m.id = d.model_id WHERE m.slug = 'm2'`, [
        { serving: { host_class: ["large", "small"] } }
      ])
    })
  )

  it.effect("calls the hub as the user who created the key", () =>
    Effect.gen(function* () {
      const tenant = yield* makeTenant()
      const other = yield* makeTenant()
      const tokens: Array<Option.Option<string>> = []
      yield* withHub((_, token) =>
        Effect.as(
          Effect.sync(() => tokens.push(token)),
          tinyFacts
        )
      )
      yield* (yield* HubConnections).set(tenant.orgId, tenant.userId, Redacted.make("hf_secret"))
      yield* preview(tenant.key, { source })
      yield* preview(other.key, { source })
      assert.deepStrictEqual(tokens, [Option.some("hf_secret"), Option.none()])
    })
  )

  it.effect("that the hub refuses returns 200 with the reason and the remedy", () =>
    Effect.gen(function* () {
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.fail(new HubRefusal({ reason: RefusalReason.TokenNotAllowed({ repo: "acme/gated" }), commit: null })))
      const answer = yield* preview(key, { source })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(jsonOf(answer), {
        object: "deployment_preview",
        kind: "refused",
        source: { kind: "model_hub", repo: "seatrial/tiny-chat", ref: null, commit: null },
        reason: { code: "access_required", message: "The hub token of the user who owns this API key may not read acme/gated." },
        remedy: { message: "Ask the repository's owner for access, or store the token of an account that has access.", serving: null }
      })
    })
  )

  it.effect("of a model that fits nowhere, or for an unknown host class, is refused with the commit", () =>
    Effect.gen(function* () {
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.succeed({ ...tinyFacts, weights_bytes: 140e9 }))
      assert.deepNestedInclude(jsonOf(yield* preview(key, { source })), { kind: "refused", "source.commit": tinyFacts.commit, "reason.code": "does_not_fit" })
      assert.deepNestedInclude(jsonOf(yield* preview(key, { source, serving: { host_class: "h100" } })), { "reason.code": "host_class_unknown" })
      yield* withHub(() => Effect.succeed(tinyFacts), [])
      assert.deepNestedInclude(jsonOf(yield* preview(key, { source })), { "reason.code": "host_class_unknown" })
    })
  )

  it.effect("never chooses a host class with more GPUs than the organization may hold", () =>
    Effect.gen(function* () {
      const { key, orgId } = yield* makeTenant()
      yield* withHub(() => Effect.succeed(tinyFacts), [{ ...small, gpu_count: 2 }, large])
      const choice = Effect.map(preview(key, { source }), (answer) => jsonOf(answer))
      assert.deepNestedInclude(yield* choice, { "serving.host_class": "small" })
      yield* (yield* PgClient.PgClient)`UPDATE organizations SET gpu_limit = 1 WHERE id = ${orgId}`
      assert.deepNestedInclude(yield* choice, { "serving.host_class": "large" })
    })
  )

  it.effect("that needs more GPUs than the organization may hold is refused, with the limit that an administrator must set", () =>
    Effect.gen(function* () {
      const { key, orgId } = yield* makeTenant()
      yield* withHub(
        () => Effect.succeed(tinyFacts),
        [
          { ...small, gpu_count: 4 },
          { ...large, gpu_count: 2 }
        ]
      )
      yield* (yield* Billing).setGpuLimit(orgId, 1)
      const limited = {
        kind: "refused",
        "reason.code": "does_not_fit",
        "reason.message": "The organization may hold 1 GPU at once, and an engine on large takes 2.",
        "remedy.message": "Ask the installation's administrators for a limit of at least 2 GPUs (`seatrial admin limits set`).",
        "remedy.serving": null
      }
      for (const serving of [{}, { host_class: ["small", "large"] }, { host_class: "any" }])
        assert.deepNestedInclude(jsonOf(yield* preview(key, { source, serving })), limited, JSON.stringify(serving))
      const small4 = "The organization may hold 1 GPU at once, and an engine on small takes 4."
      assert.deepNestedInclude(jsonOf(yield* preview(key, { source, serving: { host_class: "small" } })), { kind: "refused", "reason.message": small4 })
      yield* (yield* Billing).setGpuLimit(orgId, 2)
      assert.deepNestedInclude(jsonOf(yield* preview(key, { source })), { kind: "derived", "serving.host_class": "large" })
    })
  )

  it.effect("with an unknown runtime, cache type or flag returns 400 without a call of the hub", () =>
    Effect.gen(function* () {
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.die(new Error("the hub was asked")))
      for (const [serving, param, code] of [
        [{ runtime: "sglang" }, "serving.runtime", "invalid_parameter"],
        [{ kv_cache_dtype: "fp8" }, "serving.kv_cache_dtype", "invalid_parameter"],
        [{ engine_flags: { max_num_seqs: 0 } }, "serving.engine_flags.max_num_seqs", "invalid_body"]
      ] as const) {
        const answer = yield* preview(key, { source, serving })
        assert.strictEqual(answer.status, 400)
        assert.deepNestedInclude(jsonOf(answer), { "error.param": param, "error.code": code })
      }
    })
  )

  it.effect("while the hub is unavailable returns 503 with Retry-After", () =>
    Effect.gen(function* () {
      const { key } = yield* makeTenant()
      for (const [retryAfter, header] of [
        [undefined, "5"],
        [0, "1"],
        [1, "1"],
        [90_001, "91"]
      ] as const) {
        yield* withHub(() =>
          Effect.fail(new HubUnavailable({ message: "The model hub cannot be reached.", ...(retryAfter === undefined ? {} : { retryAfter }) }))
        )
        const answer = yield* preview(key, { source })
        assert.strictEqual(answer.status, 503)
        assert.strictEqual(answer.headers["retry-after"], header)
        assert.deepNestedInclude(jsonOf(answer), { "error.code": "unavailable", "error.type": "api_error" })
      }
    })
  )

  it.effect("that fails internally does not expose the cause", () =>
    Effect.gen(function* () {
      const { key } = yield* makeTenant()
      yield* withHub(() => Effect.die(new Error("hf_secret at /root/secrets")))
      const answer = yield* preview(key, { source })
      assert.strictEqual(answer.status, 500)
      assert.deepNestedInclude(jsonOf(answer), { "error.code": "internal", "error.type": "api_error" })
      assert.notInclude(answer.text, "secret")
      const { logged } = yield* Stage
      assert.isTrue(logged.some((line) => line.includes("/root/secrets") && line.includes(String(answer.headers["x-request-id"]))))
    })
  )
})
