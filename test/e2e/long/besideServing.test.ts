import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DeploymentId, Receipt } from "@seatrial/domain"
import { Pod } from "@seatrial/kube"
import { enginePodName, ModelDeployment } from "@seatrial/operator"
import { Effect, Fiber, Redacted, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { bodyOf } from "../Caller.ts"
import { runCommand } from "../ChildProgram.ts"
import { ask, wholeOf } from "../chat.ts"
import { objectsOfRuns } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { keepAsking } from "../keepAsking.ts"
import { readTexts } from "../readTexts.ts"
import { Served, serving } from "../Served.ts"

const token = "hf_seatrialSampleToken"
const hubRepo = "seatrial/tiny-chat-gated"

const Refused = Schema.Struct({
  kind: Schema.Literal("refused"),
  reason: Schema.Struct({ code: Schema.String }),
  remedy: Schema.Struct({ message: Schema.String })
})

layer(Served.layer, { excludeTestServices: true, timeout: 600_000 })("while a model serves", (it) => {
  it.effect(
    "a gated repository is refused without a hub connection and served with one, and its token is not stored in plain text anywhere",
    () =>
      Effect.gen(function* () {
        const { caller, folder, kube, system } = yield* Served
        const gated = { source: { kind: "model_hub", repo: hubRepo } }
        const refused = bodyOf(Refused, yield* caller.call("POST", "/v1/deployment-previews", gated))
        assert.strictEqual(refused.reason.code, "no_hub_connection")
        const failed = yield* caller.finished((yield* caller.deploy(gated)).id)
        assert.strictEqual(failed.status, "failed")
        assert.match(failed.failure_detail ?? "", /^no_hub_connection: .*store for that user a hub token/)
        assert.deepStrictEqual(
          failed.phases.map(({ status }) => status),
          ["screening", "failed"]
        )

        // All versions of the pods and custom resources, not only the last ones.
        const objectVersions: Array<string> = []
        const record = (event: unknown) =>
          Effect.sync(() => {
            objectVersions.push(JSON.stringify(event))
          })
        const watching = yield* Effect.forkScoped(
          Effect.all(
            [
              Stream.runForEach(kube.watch(Pod, { namespace: "seatrial" }), record),
              Stream.runForEach(kube.watch(ModelDeployment, { namespace: "seatrial" }), record)
            ],
            { concurrency: "unbounded" }
          )
        )
        yield* runCommand(["admin", "hub-connections", "set", "--org", "local", "--email", "you@localhost"], { SEATRIAL_STATE: folder, HF_TOKEN: token })
        const { id } = yield* caller.deploy({ ...gated, model_name: "gated", serving })
        const ended = yield* caller.finished(id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        assert.isNotEmpty(wholeOf(yield* ask(caller, ended.model)).text)

        const pods = ["fetch", enginePodName(Schema.decodeUnknownSync(DeploymentId)(id))]
        yield* eventually(
          "the watches have observed the run's pods and its record",
          Effect.sync(() => objectVersions.join("\n")),
          (all) => [...pods, "activated"].every((word) => all.includes(word))
        )
        yield* Fiber.interrupt(watching)
        assert.notInclude(objectVersions.join("\n"), token)
        yield* eventually("nothing of the run is left but its engine", objectsOfRuns(kube), (objects) =>
          objects.every((object) => !object.endsWith(id) || object === `Pod ${id}`)
        )

        const texts = readTexts(folder)
        const log = texts.find(({ path }) => path.endsWith("seatrial.log"))?.text ?? ""
        assert.include(log, id)
        assert.notInclude(log, system.state.api_key)
        assert.notInclude(log, "What does a sea trial show?")
        assert.deepStrictEqual(
          texts.filter(({ text }) => text.includes(token)).map(({ path }) => path),
          []
        )
        const layerProduct = PgClient.layer({ url: Redacted.make(system.state.database_url), maxConnections: 1 })
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const tables = yield* sql<{ readonly name: string }>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`
          assert.isAbove(tables.length, 10)
          for (const { name } of tables) {
            // A row as text contains all its columns. Bytes are in hexadecimal.
            const rows =
              yield* sql`SELECT 1 FROM ${sql(name)} AS t WHERE strpos(t::text, ${token}) > 0 OR strpos(t::text, ${Buffer.from(token).toString("hex")}) > 0`
            assert.deepStrictEqual([name, rows.length], [name, 0])
          }
        }).pipe(Effect.provide(layerProduct))
      }),
    600_000
  )

  it.effect(
    "a candidate with serve: false changes nothing; a new revision takes over without a failed request",
    () =>
      Effect.gen(function* () {
        const { caller, commit, kube, operation, model } = yield* Served
        const before = wholeOf(yield* ask(caller, model)).text
        const old = yield* caller.deployment(operation.id)

        const tag = { model_id: operation.model_id, ref: "v1" }
        const candidate = yield* caller.finished((yield* caller.deploy({ ...tag, serve: false })).id)
        assert.deepStrictEqual([candidate.status, candidate.failure_detail], ["activated", null])
        assert.notInclude(
          candidate.phases.map(({ status }) => status),
          "activating"
        )
        assert.strictEqual(candidate.revision?.status, "draft")
        assert.isNotNull(candidate.revision?.verified_at)
        assert.strictEqual((yield* caller.deployment(operation.id)).revision?.status, "active")
        assert.strictEqual(wholeOf(yield* ask(caller, model)).text, before)

        const stop = yield* keepAsking(caller, model)
        const next = yield* caller.finished((yield* caller.deploy(tag)).id)
        assert.deepStrictEqual([next.status, next.failure_detail], ["activated", null])
        // The verified candidate goes live with its running engine: no download, start or trial.
        assert.deepStrictEqual([next.revision?.id, next.revision?.verified_at], [candidate.revision?.id, candidate.revision?.verified_at])
        assert.deepStrictEqual(
          next.phases.map(({ status }) => status),
          ["screening", "activating", "activated"]
        )
        yield* eventually("the replaced engine is gone", objectsOfRuns(kube), (objects) => !objects.includes(`Pod ${operation.id}`))
        const answers = yield* stop

        const revision = (id: string) => Effect.map(caller.read(`/v1/receipts/${id}`, Receipt), ({ hf_revision }) => hf_revision)
        const [first, last] = [answers.at(0), answers.at(-1)]
        assert.deepStrictEqual([yield* revision(first?.id ?? ""), yield* revision(last?.id ?? "")], [commit, next.hf_revision])
        assert.notStrictEqual(next.hf_revision, commit)
        assert.deepStrictEqual([first?.text === before, last?.text === before], [true, false])
        const replaced = yield* caller.deployment(operation.id)
        assert.deepStrictEqual([replaced.revision?.status, next.revision?.status], ["superseded", "active"])
        assert.deepStrictEqual({ ...replaced, revision: null }, { ...old, revision: null })
      }),
    600_000
  )
})
