import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Ids } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { layerKubeClient } from "@seatrial/kube"
import { layerHealth, Operator, type StartWork, startWork } from "@seatrial/operator"
import { AppliedResources, Database, GpuHolds, HostClasses, HubConnections, Runs } from "@seatrial/store"
import { checks } from "@seatrial/store/testing"
import { Config, Effect, Layer, Logger } from "effect"
import { HttpClient } from "effect/http"

// The operator as its own program composes it, but for the trial: a stand-in for an engine cannot pass one, so each of its parts asks it once and records what a tiny model has.

const step = {
  concurrency: 1,
  requests: 10,
  errors: 0,
  seconds: 1,
  ttft_ms_p50: 1,
  ttft_ms_p90: null,
  tpot_ms_p50: 1,
  tpot_ms_p90: null,
  output_tokens_per_s: 100
}
const measured = { weights_bytes: 1_000, kv_cache_bytes: 1_000, kv_cache_tokens: 100_000, overhead_bytes: 0, max_concurrency: 4, load_seconds: 1 }
const benchmark = { suite: "seatrial-bench", suite_version: 1, input_tokens: 128, output_tokens: 32, seed: 1, steps: [step] }

const work =
  (namespace: string): StartWork =>
  (gathered, seen, kind) => {
    if (kind === "screening") return startWork(namespace)(gathered, seen, kind)
    const { id, orgId } = gathered.run
    return Effect.gen(function* () {
      const runs = yield* Runs
      const answer = yield* Effect.orDie(HttpClient.get(`${seen.pod?.url}/v1/models`))
      yield* Effect.orDie(answer.text)
      if (kind === "checking") yield* runs.recordChecks(id, orgId, checks)
      else if (kind === "measuring") yield* runs.recordMeasured(id, orgId, measured)
      else yield* runs.recordBenchmark(id, orgId, benchmark)
    })
  }

const layerKube = layerKubeClient({ kubeconfig: Config.String("KUBECONFIG").pipe(Config.withDefault(undefined)) })

const layerStore = Layer.mergeAll(Runs.layerSql, AppliedResources.layerSql, HostClasses.layerSql, GpuHolds.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge([Database.layerMigrated, Ids.layer])
)

Layer.mergeAll(
  Operator.layerWith(({ namespace }) => work(namespace)),
  layerHealth
).pipe(Layer.provide([layerStore, Hub.layer, layerKube]), Layer.provide(Logger.layer([Logger.consoleJson])), Layer.launch, NodeRuntime.runMain)
