import { assert, layer } from "@effect/vitest"
import { CatalogModel, type Check, DeploymentId, DeploymentOperation, Receipt, RequestRecord } from "@seatrial/domain"
import { ModelDeployment, objectName } from "@seatrial/operator"
import { Effect, Option, Schema } from "effect"
import { seatrial } from "../../packages/cli/test/runCommand.ts"
import { bodyOf, codeOf, makeCaller } from "./Caller.ts"
import { ask, requestIdOf, streamOf, wholeOf } from "./chat.ts"
import { objectsOfRuns } from "./cluster.ts"
import { eventually } from "./eventually.ts"
import { Served, serving, source } from "./Served.ts"

const Calibrated = Schema.Struct({ fit: Schema.Struct({ calibrated: Schema.Boolean }) })
const Models = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(CatalogModel) })
const KeyMade = Schema.fromJsonString(Schema.Struct({ secret: Schema.String }))

layer(Served.layer, { excludeTestServices: true, timeout: 600_000 })("from a preview to a receipt", (it) => {
  it.effect("a deployment has each phase once and in order, its checks, and a revision of the previewed commit", () =>
    Effect.gen(function* () {
      const { caller, commit, kube, operation } = yield* Served
      const detail = yield* caller.deployment(operation.id)
      assert.deepStrictEqual(
        detail.phases.map(({ status }) => status),
        ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating", "activated"]
      )
      const times = detail.phases.map(({ at }) => Date.parse(at))
      assert.deepStrictEqual(
        times,
        times.toSorted((a, b) => a - b)
      )
      assert.isTrue(detail.checks.length >= 5 && detail.checks.every(({ passed }) => passed))
      // The object in the cluster has the same rows.
      const shownChecks = kube
        .get(ModelDeployment, objectName(Schema.decodeUnknownSync(DeploymentId)(operation.id)), "seatrial")
        .pipe(Effect.map((object) => Option.getOrUndefined(object)?.status?.checks ?? []))
      assert.deepStrictEqual(yield* eventually("its object shows the rows", shownChecks, (rows) => rows.length >= detail.checks.length), detail.checks)
      assert.deepInclude(detail.revision, { id: detail.revision_id ?? "", status: "active", hf_revision: commit, engine: "reference", gpu_count: 1 })
      assert.isTrue(detail.revision?.engine_version.startsWith("reference-"))
      assert.isNotNull(detail.ended_at)
    })
  )

  it.effect("the next preview of the same model is calibrated by the measured engine", () =>
    Effect.gen(function* () {
      const { caller } = yield* Served
      const { fit } = bodyOf(Calibrated, yield* caller.call("POST", "/v1/deployment-previews", { source, serving }))
      assert.isTrue(fit.calibrated)
    })
  )

  it.effect("a serving model is listed with its capabilities only to its organization", () =>
    Effect.gen(function* () {
      const { caller, commit, model, operation } = yield* Served
      const { revision_id, revision } = yield* caller.deployment(operation.id)
      const { data } = yield* caller.read("/v1/models", Models)
      const own = data.find(({ id }) => id === model)
      assert.deepInclude(own, {
        owned_by: model.split("/")[0] ?? "",
        hf_revision: commit,
        config_revision: revision_id ?? "",
        engine_version: revision?.engine_version ?? "",
        price_in_micros_per_mtok: "0",
        supported_endpoints: ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"],
        supports_streaming: true,
        capabilities_verified_at: Math.floor(Date.parse(revision?.verified_at ?? "") / 1000)
      })
      const { data: published } = yield* caller.read("/v1/catalog/models", Models)
      assert.notInclude(
        published.map(({ config_revision }) => config_revision),
        revision_id
      )
    })
  )

  it.effect("a streamed answer equals the complete one, and each request has a record and a receipt with its exact usage", () =>
    Effect.gen(function* () {
      const { caller, commit, model } = yield* Served
      const wholeAnswer = yield* ask(caller, model)
      const streamedAnswer = yield* ask(caller, model, { stream: true, stream_options: { include_usage: true } })
      const [whole, stream] = [wholeOf(wholeAnswer), streamOf(streamedAnswer)]
      assert.isNotEmpty(whole.text)
      assert.deepStrictEqual([stream.text, stream.finish, stream.usage], [whole.text, whole.finish, whole.usage])
      assert.isAbove(stream.chunks, 2)

      const answers = [
        { answer: wholeAnswer, streamed: false },
        { answer: streamedAnswer, streamed: true }
      ]
      for (const { answer, streamed } of answers) {
        const id = requestIdOf(answer)
        const record = yield* caller.read(`/v1/requests/${id}`, RequestRecord)
        assert.deepInclude(record, {
          id,
          state: "completed",
          model,
          status_code: 200,
          streamed,
          input_tokens: whole.usage.prompt_tokens,
          output_tokens: whole.usage.completion_tokens,
          finish_reason: whole.finish,
          cost_micros: "0",
          error: null,
          receipt_url: `/v1/receipts/${id}`
        })
        const receipt = yield* caller.read(`/v1/receipts/${id}`, Receipt)
        assert.deepInclude(receipt, { request_id: id, hf_revision: commit, model, status_code: 200, streamed, finish_reason: whole.finish, cost_micros: "0" })
        assert.deepInclude(receipt.usage, { input_tokens: whole.usage.prompt_tokens, output_tokens: whole.usage.completion_tokens })
        assert.isTrue(receipt.engine_version.startsWith("reference-"))
        assert.isTrue(receipt.verification?.checks.every(({ passed }: Check) => passed))
        // The receipt also states the capacity and the speed.
        const details = new Map(receipt.verification?.checks.map(({ detail = "", name }: Check) => [name, detail]))
        assert.match(details.get("reference_agrees") ?? "", /^mean 0\.0000, absolute 0\.0000, .* from Transformers/u)
        assert.match(details.get("kv_capacity") ?? "", /^[1-9]\d* tokens, .*, simulated GPUs; bytes per GPU: weights [1-9]/)
        // There is no row if a busy machine limited the benchmark.
        const speed = details.get("benchmark_floor")
        if (speed !== undefined) assert.match(speed, /simulated GPUs: c=1 [\d.]+ tokens\/s/)
        assert.isAbove(receipt.verification?.outputFingerprints?.length ?? 0, 0)
      }
    })
  )

  it.effect("a repeated create returns the same run, or a conflict with other input; a run is canceled once", () =>
    Effect.gen(function* () {
      const { caller, idempotencyKey, input, kube, operation } = yield* Served
      const repeat = (body: unknown) => caller.call("POST", "/v1/deployments", body, { "idempotency-key": idempotencyKey })
      const again = yield* repeat(input)
      assert.deepStrictEqual([again.status, again.headers.get("idempotent-replayed")], [200, "true"])
      assert.deepInclude(bodyOf(DeploymentOperation, again), { id: operation.id, model_id: operation.model_id, status: "activated" })
      const other = yield* repeat({ source })
      assert.deepStrictEqual([other.status, codeOf(other)], [409, "idempotency_key_reused"])

      const finished = yield* caller.call("POST", `/v1/deployments/${operation.id}/cancel`)
      assert.deepStrictEqual([finished.status, codeOf(finished)], [409, "deployment_finished"])
      const second = yield* caller.deploy({ source, model_name: "cancelled" })
      const cancel = yield* caller.call("POST", `/v1/deployments/${second.id}/cancel`)
      assert.deepStrictEqual([cancel.status, JSON.parse(cancel.text)], [200, { id: second.id, cancelled: true }])
      const ended = yield* caller.deployment(second.id)
      assert.strictEqual(ended.status, "cancelled")
      assert.strictEqual(ended.phases.at(-1)?.status, "cancelled")
      assert.strictEqual((yield* caller.call("POST", `/v1/deployments/${second.id}/cancel`)).status, 409)
      yield* eventually("nothing of the cancelled run is left", objectsOfRuns(kube), (objects) => objects.every((object) => !object.endsWith(second.id)))
      assert.deepStrictEqual(yield* caller.deployment(second.id), ended)
    })
  )

  it.effect("another organization gets the same responses for existing and nonexistent records", () =>
    Effect.gen(function* () {
      const { caller, operation, system, model } = yield* Served
      const request = requestIdOf(yield* ask(caller, model))
      const { database_url: DATABASE_URL, encryption_key: SEATRIAL_ENCRYPTION_KEY } = system.state
      const admin = (...args: ReadonlyArray<string>) => seatrial(["admin", ...args], { DATABASE_URL, SEATRIAL_ENCRYPTION_KEY })
      yield* admin("orgs", "create", "other", "--json")
      yield* admin("members", "add", "--org", "other", "--email", "o@example.com", "--json")
      const created = yield* admin("keys", "create", "--org", "other", "--email", "o@example.com", "--json")
      const other = makeCaller(system.state.address, Schema.decodeUnknownSync(KeyMade)(created.out).secret)

      const unknown = (id: string) => `${id.slice(0, -4)}${id.endsWith("zzzz") ? "yyyy" : "zzzz"}`
      const paths = (deployment: string, request: string) =>
        [
          ["GET", `/v1/deployments/${deployment}`],
          ["GET", `/v1/org/deployments/${deployment}`],
          ["GET", `/v1/deployments/${deployment}/events`],
          ["POST", `/v1/deployments/${deployment}/cancel`],
          ["GET", `/v1/requests/${request}`],
          ["GET", `/v1/receipts/${request}`]
        ] as const
      const missing = paths(unknown(operation.id), unknown(request))
      for (const [index, [method, path]] of paths(operation.id, request).entries()) {
        const theirs = yield* other.call(method, path)
        const nobodys = yield* other.call(method, missing[index]?.[1] ?? "")
        const comparable = (answer: typeof theirs) => answer.text.replaceAll(requestIdOf(answer), "")
        assert.deepStrictEqual([theirs.status, codeOf(theirs), comparable(theirs)], [404, "not_found", comparable(nobodys)], path)
      }
      assert.strictEqual((yield* ask(other, model)).status, 404)
      assert.notInclude((yield* other.call("GET", "/v1/deployments")).text, operation.id)
      assert.strictEqual((yield* ask(caller, model)).status, 200)
    })
  )
})
