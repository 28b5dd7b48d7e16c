import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Ids } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { layerKubeClient } from "@seatrial/kube"
import { Operator } from "@seatrial/operator"
import { AppliedResources, Database, GpuHolds, HostClasses, HubConnections, Runs } from "@seatrial/store"
import { Config, Effect, Layer, Logger } from "effect"
import { standInTrial } from "./standInTrial.ts"

const layerStore = Layer.mergeAll(Runs.layerSql, AppliedResources.layerSql, HostClasses.layerSql, GpuHolds.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge([Database.layerOperator, Ids.layer])
)

// The operator program with a stand-in for the trial.
Operator.layerWith(() => standInTrial({ verified: () => {}, comparison: Effect.void })).pipe(
  Layer.provide([layerStore, Hub.layer, layerKubeClient({ kubeconfig: Config.String("KUBECONFIG") })]),
  Layer.provide(Logger.layer([Logger.consoleJson])),
  Layer.launch,
  NodeRuntime.runMain
)
