import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect, Redacted, Schema } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { serving, source } from "../e2e/Served.ts"
import { hostClass, startHelmCluster } from "./HelmCluster.ts"
import { keepReading } from "./keepReading.ts"

const chart = join(import.meta.dirname, "../../charts/seatrial")
/** The chart as it was before the database was migrated by a Job, packaged. */
const previous = join(import.meta.dirname, "fixtures/seatrial-0.1.0.tgz")

const patient = ["--wait", "--timeout", "8m"]

/** Two versions to come: one migrates for a while, the other fails midway. */
const migrations = {
  "0.2.0": ["CREATE TABLE next_version (id int)", "SELECT pg_sleep(2)"],
  "0.3.0": ["CREATE TABLE half_way (id int)", "ALTER TABLE nowhere ADD COLUMN id int"]
}

const LastRun = Schema.Struct({ phase: Schema.String, completed_at: Schema.optionalKey(Schema.String) })
const Release = Schema.fromJsonString(
  Schema.Struct({
    info: Schema.Struct({ status: Schema.String }),
    hooks: Schema.Array(Schema.Struct({ name: Schema.String, last_run: Schema.optionalKey(LastRun) }))
  })
)

it.live(
  "the chart is upgraded from the previous version, API and model survive an upgrade with a new migration and one that fails, and an uninstall keeps data and custom resources",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startHelmCluster({ migrations })
      const { helm, kube, kubectl, namespace, valuesFile } = cluster
      const values = ["--values", valuesFile, "--set", "server.replicas=2,gateway.replicas=2"]
      const pods = (component: string) =>
        Effect.map(kube.list(Pod, { namespace, labelSelector: `app.kubernetes.io/component=${component}` }), (found) =>
          found.map(({ metadata }) => metadata.name)
        )
      const programs = Effect.all([pods("server"), pods("gateway"), pods("operator")])
      const release = Effect.map(helm("status", "seatrial", "-o", "json"), Schema.decodeUnknownSync(Release))
      const migration = Effect.map(release, ({ hooks }) => hooks.find(({ name }) => name === "seatrial-migrate")?.last_run)
      const tables = Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const rows = yield* sql`SELECT table_name AS name FROM information_schema.tables WHERE table_name IN ('next_version', 'half_way')`
        return rows.map(({ name }) => name)
      }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(cluster.database), maxConnections: 1 })))
      /** The chart as of a later version. */
      const later = (version: string, appVersion: string) =>
        Effect.as(
          helm("package", chart, "--version", version, "--app-version", appVersion, "--destination", cluster.directory),
          join(cluster.directory, `seatrial-${version}.tgz`)
        )
      const engines = Effect.map(kube.list(Pod, { namespace, labelSelector: "seatrial.dev/role=engine" }), (found) =>
        found.map(({ metadata, status }) => [metadata.uid, status?.phase] as const)
      )

      // The previous chart's programs listen where another pod of this machine does, so that none of them runs.
      const none = ["server", "gateway", "operator"].flatMap((program) => ["--set", `${program}.replicas=0`])
      yield* helm("install", "seatrial", previous, "--set", "weights.size=100Gi", ...none, ...patient)

      const refused = yield* Effect.flip(helm("upgrade", "seatrial", chart, ...values, ...patient))
      assert.match(refused.message, /definition of \w+\.seatrial\.dev is not that of this chart/)
      const definitions = yield* helm("show", "crds", chart)
      yield* cluster.command("kubectl", ["apply", "--server-side", "--force-conflicts", "-f", "-"], { input: definitions })

      const upgraded = yield* helm("upgrade", "seatrial", chart, ...values, ...patient)
      assert.include(upgraded, "`helm uninstall` removes the programs only")
      assert.strictEqual((yield* migration)?.phase, "Succeeded")
      assert.deepStrictEqual(
        (yield* programs).map((names) => names.length),
        [2, 2, 1]
      )

      yield* cluster.command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(hostClass()) })
      // What the notes say to do next, in a container of the server there.
      const commands = [...upgraded.matchAll(/ -- env SEATRIAL_ADMIN=\S+ seatrial (admin .+)$/gmu)].map(([, words = ""]) => words.split(" "))
      assert.strictEqual(commands.length, 4)
      yield* Effect.forEach(commands, ([, ...args]) => cluster.admin(...args))
      const { api, inference } = yield* cluster.caller("acme", "ada@acme.test")
      yield* eventually("the operator has reported the host class", api.call("POST", "/v1/deployment-previews", { source, serving }), ({ text }) =>
        text.includes('"derived"')
      )
      const { id } = yield* api.deploy({ source, serving })
      const ended = yield* api
        .finished(id)
        .pipe(Effect.tapCause(() => Effect.flatMap(kubectl("logs", "-l", "app.kubernetes.io/component=operator", "--tail=60"), Effect.logError)))
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      const answer = wholeOf(yield* ask(inference, ended.model)).text
      yield* kubectl("wait", "--for=condition=Activated", "modeldeployments", "--all", "--timeout=300s")

      const tested = yield* helm("test", "seatrial", "--logs", "--timeout", "5m")
      assert.match(tested, /Phase:\s+Succeeded/)
      assert.include(tested, `${cluster.server.address} is ready`)

      for (const [program, metric] of [
        ["server", "seatrial_server_request_seconds"],
        ["gateway", "seatrial_gateway_request_seconds"],
        ["operator", "seatrial_store_phase_seconds"]
      ] as const) {
        const [pod] = yield* kube.list(Pod, { namespace, labelSelector: `app.kubernetes.io/component=${program},seatrial.dev/metrics=true` })
        const text = yield* Effect.promise(async () => (await fetch(`http://${pod?.status?.podIP}:9090/metrics`)).text())
        assert.include(text, `# TYPE ${metric} histogram`)
      }

      const engine = yield* engines
      assert.deepStrictEqual(
        engine.map(([, phase]) => phase),
        ["Running"]
      )
      // One pod of a program may be evicted at a time, and a single pod has no budget.
      const allowed = kubectl("get", "poddisruptionbudgets", "-o", "jsonpath={range .items[*]}{.metadata.name}={.status.disruptionsAllowed};{end}")
      const mayGo = eventually("one pod of each program may go", allowed, (said) => said.includes("seatrial-gateway=1;seatrial-server=1;"))
      assert.notInclude(yield* mayGo, "seatrial-operator")
      const evict = (name: string) =>
        cluster.command("kubectl", ["create", "--raw", `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, "-f", "-"], {
          input: JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } })
        })
      const stop = yield* keepAsking(inference, ended.model)
      const stopReading = yield* keepReading(api)
      for (const component of ["server", "gateway"]) {
        const [one = "", other = ""] = yield* pods(component)
        yield* evict(one)
        assert.match((yield* Effect.flip(evict(other))).message, /disruption budget/)
      }
      yield* mayGo

      const salts = kubectl("get", "secret", "seatrial-gateway", "-o", "jsonpath={.data}")
      const saltsBefore = yield* salts
      const before = yield* programs
      const next = yield* later("0.3.0", "0.2.0")
      yield* helm("upgrade", "seatrial", next, "--reset-then-reuse-values", "--set", "database.poolSize=7", ...patient)
      assert.deepStrictEqual(yield* tables, ["next_version"])
      yield* eventually("the pods of before are gone", programs, (now) => {
        const left = new Set(before.flat())
        return now.flat().length === 5 && now.flat().every((name) => !left.has(name))
      })
      assert.strictEqual(yield* salts, saltsBefore)
      const migrated = yield* migration
      assert.strictEqual(migrated?.phase, "Succeeded")
      const newPods = yield* kube.list(Pod, { namespace, labelSelector: "seatrial.dev/metrics=true" })
      // The API server's times are whole seconds.
      for (const { metadata } of newPods) assert.isAtLeast(Date.parse(metadata.creationTimestamp ?? "") + 999, Date.parse(migrated?.completed_at ?? ""))

      // A failed upgrade is reported, and the previous version continues.
      const after = yield* programs
      const failed = yield* Effect.flip(helm("upgrade", "seatrial", yield* later("0.4.0", "0.3.0"), "--reset-then-reuse-values", ...patient))
      assert.match(failed.message, /UPGRADE FAILED: pre-upgrade hooks failed[\s\S]*seatrial-migrate/)
      assert.match(yield* kubectl("logs", "-l", "app.kubernetes.io/component=migrate", "--tail=-1"), /relation "nowhere" does not exist/)
      assert.strictEqual((yield* release).info.status, "failed")
      assert.deepStrictEqual([yield* programs, yield* tables], [after, ["next_version"]])
      const { answered, failures } = yield* stopReading
      assert.deepStrictEqual(failures, [])
      assert.isAbove(answered, 100)
      const answers = yield* stop
      assert.isAbove(answers.length, 2)
      assert.deepStrictEqual([...new Set(answers.map(({ text }) => text))], [answer])
      assert.deepStrictEqual(yield* engines, engine)
      const pool = ["get", "deployment", "seatrial-server", "-o", "jsonpath={.spec.template.spec.containers[0].env[?(@.name=='DATABASE_POOL_SIZE')].value}"]
      assert.strictEqual(yield* kubectl(...pool), "7")

      const gone = yield* helm("uninstall", "seatrial", ...patient)
      assert.match(gone, /kept due to the resource policy[\s\S]*PersistentVolumeClaim\]? seatrial-weights/)
      yield* eventually("no program is left", programs, (now) => now.flat().length === 0)
      const left = yield* kubectl("get", "modeldeployments,hostclasses,persistentvolumeclaims", "-o", "name")
      assert.deepStrictEqual(left.trim().split("\n").sort(), [
        "hostclass.seatrial.dev/sim-small",
        `modeldeployment.seatrial.dev/${id.replace("_", "-")}`,
        "persistentvolumeclaim/seatrial-weights"
      ])
      assert.deepStrictEqual(yield* engines, engine)

      yield* helm("install", "seatrial", next, ...values, ...patient)
      assert.strictEqual(wholeOf(yield* ask(inference, ended.model)).text, answer)
      assert.deepStrictEqual(yield* engines, engine)
      const { data } = yield* api.read(
        "/v1/org/deployments",
        Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String, status: Schema.String })) })
      )
      assert.deepStrictEqual(data, [{ id, status: "activated" }])
    }).pipe(Effect.scoped),
  1_200_000
)
