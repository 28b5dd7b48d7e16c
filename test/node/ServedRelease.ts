import { OrgModel } from "@seatrial/domain"
import { Node } from "@seatrial/kube"
import { Context, Effect, Layer, Schema } from "effect"
import { makeCaller } from "../e2e/Caller.ts"
import { eventually } from "../e2e/eventually.ts"
import { NodeCluster, type NodeClusterShape } from "./NodeCluster.ts"
import { pageImage, runQuickStart, valuesFile } from "./quickStart/runQuickStart.ts"

export interface ServedReleaseShape extends NodeClusterShape {
  /** The product's image: name and tag. */
  readonly image: string
  readonly valuesFile: string
  /** What the commands of the quick start printed, by step. */
  readonly printed: ReadonlyMap<number, string>
  readonly key: string
  /** Callers of the API and the gateway at the addresses of their Services. */
  readonly api: ReturnType<typeof makeCaller>
  readonly inference: ReturnType<typeof makeCaller>
  /** A caller of the gateway at another address, such as that of one pod. */
  readonly at: (address: string) => ReturnType<typeof makeCaller>
  /** The callable name of the model. */
  readonly model: string
  readonly modelId: string
}

const Models = Schema.Struct({ data: Schema.Array(OrgModel) })

/** The chart with its own Postgres on real nodes, and one model that has passed its trial, by the commands of the quick start. Every test must leave it serving. */
export class ServedRelease extends Context.Service<ServedRelease, ServedReleaseShape>()("seatrial/test/ServedRelease") {
  static readonly layer = Layer.effect(
    ServedRelease,
    Effect.gen(function* () {
      const cluster = yield* NodeCluster
      yield* eventually("both nodes offer GPUs", cluster.kube.list(Node, {}), (nodes) =>
        nodes.every(({ status }) => status?.allocatable?.["nvidia.com/gpu"] === "4")
      )
      const { key, printed } = yield* runQuickStart(cluster)
      const at = (address: string) => makeCaller(address, key)
      const api = at(yield* cluster.addressOf("seatrial-server"))
      const [model] = (yield* api.read("/v1/org/models", Models)).data
      if (model === undefined) return yield* Effect.die(new Error("There is no model after the quick start."))
      const inference = at(yield* cluster.addressOf("seatrial-gateway"))
      return ServedRelease.of({ ...cluster, image: pageImage, valuesFile, printed, key, api, inference, at, model: `acme/${model.slug}`, modelId: model.id })
    })
  ).pipe(Layer.provide(NodeCluster.layer))
}
