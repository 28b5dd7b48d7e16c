import { assert } from "@effect/vitest"
import { isFinished } from "@seatrial/domain"
import { Node } from "@seatrial/kube"
import { Context, Effect, Layer, Schedule } from "effect"
import { simulatedHostClass } from "../cluster/simulatedHostClass.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving, source } from "../e2e/Served.ts"
import { type Callers, chart, NodeCluster, type NodeClusterShape } from "./NodeCluster.ts"

export interface ServedReleaseShape extends NodeClusterShape, Callers {
  /** The callable name of the model. */
  readonly model: string
}

/** The chart with its own Postgres on real nodes, and one model that has passed its trial. Every test must leave it serving. */
export class ServedRelease extends Context.Service<ServedRelease, ServedReleaseShape>()("seatrial/test/ServedRelease") {
  static readonly layer = Layer.effect(
    ServedRelease,
    Effect.gen(function* () {
      const cluster = yield* NodeCluster
      const { apply, callers, helm, image, kube, valuesFile } = cluster
      yield* eventually("both nodes offer GPUs", kube.list(Node, {}), (nodes) => nodes.every(({ status }) => status?.allocatable?.["nvidia.com/gpu"] === "4"))
      yield* helm("install", "seatrial", chart, "--values", valuesFile, "--wait", "--timeout", "8m")
      yield* apply(simulatedHostClass("sim-small", { image, bootDeadlineSeconds: 300 }))
      const { api, at, inference } = yield* callers("acme")
      const preview = api.call("POST", "/v1/deployment-previews", { source, serving })
      yield* eventually("the server knows the host class", preview, ({ text }) => text.includes('"derived"'))
      const { id } = yield* api.deploy({ source, serving })
      // A busy machine needs more time for a trial than other waits of tests allow.
      const ended = yield* Effect.repeat(api.deployment(id), { until: ({ status }) => isFinished(status), schedule: Schedule.spaced("1 second") })
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      return ServedRelease.of({ ...cluster, api, at, inference, model: ended.model })
    })
  ).pipe(Layer.provide(NodeCluster.layer))
}
