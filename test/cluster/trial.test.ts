import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { startHelmCluster } from "./HelmCluster.ts"

const chart = join(import.meta.dirname, "../../charts/seatrial")
const patient = ["--wait", "--timeout", "8m"]
const Models = Schema.Struct({ data: Schema.Array(Schema.Unknown) })

it.live(
  "with its own Postgres the chart installs a system that serves the API, survives an upgrade, and keeps its data if the Postgres pod is replaced",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startHelmCluster({ embedded: true })
      const { helm, kubectl } = cluster
      const trial = ["--set", "postgres.embedded.enabled=true"]
      yield* helm("install", "seatrial", chart, "--values", cluster.valuesFile, ...trial, ...patient).pipe(
        Effect.tapError(() => Effect.flatMap(kubectl("logs", "seatrial-postgres-0", "--tail=40"), Effect.logError))
      )
      yield* cluster.organization("acme", "ada@acme.test")
      const { api } = yield* cluster.caller("acme", "ada@acme.test")
      assert.isEmpty((yield* api.read("/v1/models", Models)).data)
      yield* helm("upgrade", "seatrial", chart, "--reset-then-reuse-values", "--set", "database.poolSize=7", ...patient)
      yield* kubectl("delete", "pod", "seatrial-postgres-0")
      yield* kubectl("rollout", "status", "statefulset/seatrial-postgres", "--timeout=300s")
      yield* eventually("its keys are known again", api.call("GET", "/v1/models"), ({ status }) => status === 200)
      yield* helm("uninstall", "seatrial", ...patient)
      assert.include(yield* kubectl("get", "persistentvolumeclaims", "-o", "name"), "data-seatrial-postgres-0")
    }).pipe(Effect.scoped),
  1_200_000
)
