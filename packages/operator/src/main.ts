import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Ids, layerLog, layerTracing, reportStartProblem } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { layerKubeClient } from "@seatrial/kube"
import { AppliedResources, Database, GpuHolds, HostClasses, HubConnections, layerProbe, Runs } from "@seatrial/store"
import { Config, Layer, Runtime } from "effect"
import { layerHealth } from "./health.ts"
import { Operator } from "./Operator.ts"

const layerKube = layerKubeClient({ kubeconfig: Config.String("KUBECONFIG").pipe(Config.withDefault(undefined)) })

const layerStore = Layer.mergeAll(Runs.layerSql, AppliedResources.layerSql, HostClasses.layerSql, GpuHolds.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge([Database.layerOperator, Ids.layer])
)

Layer.mergeAll(Operator.layer, layerHealth, layerProbe).pipe(
  Layer.provide([layerStore, Hub.layer, layerKube]),
  Layer.provide(layerTracing("seatrial-operator")),
  Layer.provide(layerLog),
  Layer.launch,
  reportStartProblem("seatrial operator"),
  // A stop signal (exit code 130) is a normal exit.
  NodeRuntime.runMain({ teardown: (exit, onExit) => Runtime.defaultTeardown(exit, (code) => onExit(code === 130 ? 0 : code)) })
)
