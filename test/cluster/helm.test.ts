import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect, Schema } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { serving, source } from "../e2e/Served.ts"
import { hostClass, startHelmCluster } from "./HelmCluster.ts"

const chart = join(import.meta.dirname, "../../charts/seatrial")
/** The chart as it was before the database was migrated by a Job, packaged. */
const previous = join(import.meta.dirname, "fixtures/seatrial-0.1.0.tgz")

const patient = ["--wait", "--timeout", "8m"]

const Hooks = Schema.fromJsonString(
  Schema.Struct({ hooks: Schema.Array(Schema.Struct({ name: Schema.String, last_run: Schema.optionalKey(Schema.Struct({ phase: Schema.String })) })) })
)

it.live(
  "the chart is upgraded from the one before, serves a model, keeps serving it through an upgrade, and leaves data and custom resources when it goes",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startHelmCluster()
      const { helm, kube, kubectl, namespace, valuesFile } = cluster
      const values = ["--values", valuesFile]
      const pods = (component: string) =>
        Effect.map(kube.list(Pod, { namespace, labelSelector: `app.kubernetes.io/component=${component}` }), (found) =>
          found.map(({ metadata }) => metadata.name)
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
      const { hooks } = Schema.decodeUnknownSync(Hooks)(yield* helm("status", "seatrial", "-o", "json"))
      assert.deepInclude(
        hooks.map(({ last_run, name }) => [name, last_run?.phase]),
        ["seatrial-migrate", "Succeeded"]
      )

      yield* cluster.command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(hostClass()) })
      // What the notes say to do next, in a container of the server there.
      const commands = [...upgraded.matchAll(/ -- seatrial (admin .+)$/gmu)].map(([, words = ""]) => words.split(" "))
      assert.strictEqual(commands.length, 4)
      yield* Effect.forEach(commands, ([, ...args]) => cluster.admin(...args))
      const { api, inference } = yield* cluster.caller("acme", "ada@acme.test")
      yield* eventually("the operator has told the server of the host class", api.call("POST", "/v1/deployment-previews", { source, serving }), ({ text }) =>
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
        ["operator", "seatrial_operator_phase_seconds"]
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
      const before = yield* Effect.all([pods("server"), pods("gateway"), pods("operator")])
      const stop = yield* keepAsking(inference, ended.model)
      yield* helm("upgrade", "seatrial", chart, "--reset-then-reuse-values", "--set", "database.poolSize=7", ...patient)
      yield* eventually("the pods of before are gone", Effect.all([pods("server"), pods("gateway"), pods("operator")]), (now) => {
        const left = new Set(before.flat())
        return now.flat().length === 3 && now.flat().every((name) => !left.has(name))
      })
      const answers = yield* stop
      assert.isAbove(answers.length, 2)
      assert.deepStrictEqual([...new Set(answers.map(({ text }) => text))], [answer])
      assert.deepStrictEqual(yield* engines, engine)
      const pool = ["get", "deployment", "seatrial-server", "-o", "jsonpath={.spec.template.spec.containers[0].env[?(@.name=='DATABASE_POOL_SIZE')].value}"]
      assert.strictEqual(yield* kubectl(...pool), "7")

      const gone = yield* helm("uninstall", "seatrial", ...patient)
      assert.match(gone, /kept due to the resource policy[\s\S]*PersistentVolumeClaim\]? seatrial-weights/)
      yield* eventually("no program is left", Effect.all([pods("server"), pods("gateway"), pods("operator")]), (now) => now.flat().length === 0)
      const left = yield* kubectl("get", "modeldeployments,hostclasses,persistentvolumeclaims", "-o", "name")
      assert.deepStrictEqual(left.trim().split("\n").sort(), [
        "hostclass.seatrial.dev/sim-small",
        `modeldeployment.seatrial.dev/${id.replace("_", "-")}`,
        "persistentvolumeclaim/seatrial-weights"
      ])
      assert.deepStrictEqual(yield* engines, engine)

      yield* helm("install", "seatrial", chart, ...values, ...patient)
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
