import { assert, it } from "@effect/vitest"
import type { OpenHold } from "@seatrial/store"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { makeHoldMetrics } from "../../src/gpu/holdMetrics.ts"
import { deploymentId, otherDeployment } from "../observations.ts"

const hold: OpenHold = { podUid: "u", pod: "p", deploymentId, organization: "counted", hostClass: "h", gpus: 2, silent: false, failing: null }

/** The samples of a metric, without its name. */
const samples = (name: string) =>
  Effect.map(PrometheusMetrics.format(), (text) =>
    [...text.matchAll(new RegExp(`^${name}\\{(.*)\\} (\\S+)$`, "gm"))]
      .map(([, labels, value]) => `${labels} ${value}`)
      .filter((line) => line.includes("counted"))
  )
const deployments = samples("seatrial_deployment_gpu_seconds_total")
const ofDeployment = (id: string, seconds: number) => `organization="counted",deployment="${id}" ${seconds}`

it.effect("GPU-seconds are counted for each organization and deployment, and a deployment is shown for ten minutes after it released its GPUs", () =>
  Effect.gen(function* () {
    let held: ReadonlyArray<OpenHold> = [hold, { ...hold, podUid: "v" }, { ...hold, podUid: "w", deploymentId: otherDeployment, gpus: 1 }]
    const { count, none } = makeHoldMetrics(() => held)
    yield* count
    yield* TestClock.adjust("10 seconds")
    yield* count
    assert.deepStrictEqual(yield* deployments, [ofDeployment(deploymentId, 40), ofDeployment(otherDeployment, 10)])
    assert.deepStrictEqual(yield* samples("seatrial_gpu_seconds_total"), ['organization="counted",host_class="h" 50'])

    // The holds on an unresponsive node are unknown, and the other deployment released its own.
    held = [{ ...hold, silent: true }]
    yield* TestClock.adjust("599 seconds")
    yield* count
    assert.deepStrictEqual(yield* deployments, [ofDeployment(deploymentId, 40), ofDeployment(otherDeployment, 10)])
    held = [hold]
    yield* TestClock.adjust("1 seconds")
    yield* count
    assert.deepStrictEqual(yield* deployments, [ofDeployment(deploymentId, 42)])
    yield* none
    assert.deepStrictEqual(yield* deployments, [])
  })
)
