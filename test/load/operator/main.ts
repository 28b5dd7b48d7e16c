import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Ids } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { layerKubeClient } from "@seatrial/kube"
import { layerHealth, Operator, type StartWork, startWork } from "@seatrial/operator"
import { AppliedResources, Database, GpuHolds, HostClasses, HubConnections, Runs } from "@seatrial/store"
import { benchmark, capacityRow, checks, measured, speedRow } from "@seatrial/store/testing"
import { Config, Effect, Layer, Logger } from "effect"
import { HttpClient } from "effect/http"
import { type EngineWork, needsEngine } from "../../../packages/operator/src/observation/work.ts"
import type { WorkSettings } from "../../../packages/operator/src/work/startWork.ts"

// The operator as its program composes it, except the trial, which a stand-in engine cannot pass. Each part of the trial makes one request and records the results of a tiny model.

const work =
  (settings: WorkSettings): StartWork =>
  (gathered, seen, kind) => {
    if (!needsEngine(kind)) return startWork(settings)(gathered, seen, kind)
    const { engineRun, id, orgId } = gathered.run
    return Effect.gen(function* () {
      const runs = yield* Runs
      const answer = yield* Effect.orDie(HttpClient.get(`${seen.pod?.url}/v1/models`))
      yield* Effect.orDie(answer.text)
      if (kind === "boot") {
        gathered.bootVerdicts.set(engineRun, { boot: seen.boot?.boot ?? "", outcome: "same", message: "", at: 0, failures: 0 })
        return
      }
      const results: Record<Exclude<EngineWork, "boot">, Effect.Effect<boolean>> = {
        fidelity: Effect.die("no adapter is deployed here"),
        checking: runs.recordChecks(id, orgId, checks),
        comparing: runs.recordChecks(id, orgId, checks),
        measuring: runs.recordMeasured(id, orgId, measured, capacityRow),
        benchmarking: runs.recordBenchmark(id, orgId, benchmark, speedRow)
      }
      yield* results[kind]
    })
  }

// As in a pod, except for the path of its ServiceAccount.
const layerKube = layerKubeClient({ serviceAccount: Config.String("SERVICE_ACCOUNT") })

const layerStore = Layer.mergeAll(Runs.layerSql, AppliedResources.layerSql, HostClasses.layerSql, GpuHolds.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge([Database.layerOperator, Ids.layer])
)

Layer.mergeAll(Operator.layerWith(work), layerHealth).pipe(
  Layer.provide([layerStore, Hub.layer, layerKube]),
  Layer.provide(Logger.layer([Logger.consoleJson])),
  Layer.launch,
  NodeRuntime.runMain
)
