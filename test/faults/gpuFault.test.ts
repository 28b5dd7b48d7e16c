import { assert, it } from "@effect/vitest"
import { Event } from "@seatrial/kube"
import { enginePodName, ModelDeployment, objectName } from "@seatrial/operator"
import { Effect, Option } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { decodeId } from "./expectedEnd.ts"
import { xid } from "./Kubelet.ts"
import { namespace, openLane } from "./Lane.ts"
import { serveFirst } from "./serveFirst.ts"

it.live("a failed GPU is shown on the deployment with the message of its node, and the engine starts again without a fault of the model", () =>
  Effect.gen(function* () {
    const lane = yield* openLane
    const { kube, kubelet } = lane
    const { run } = yield* serveFirst(lane)
    const id = decodeId(run)
    const name = (yield* kubelet.nodeOf(enginePodName(id))) ?? ""
    yield* kubelet.failForGpu(enginePodName(id))
    const event = yield* eventually(
      "an event for the GPU",
      Effect.map(patiently(kube.list(Event, { namespace })), (events) => events.find(({ reason }) => reason === "GpuFault")),
      (event) => event !== undefined
    )
    assert.deepInclude(event, { type: "Warning", note: `Node/${name}: XIDError: ${xid.message}` })
    assert.strictEqual(event?.regarding.name, objectName(id))
    const after = yield* eventually(
      "a model that serves again",
      Effect.map(patiently(kube.get(ModelDeployment, objectName(id), namespace)), (resource) => Option.getOrThrow(resource).status),
      (showsEnd) => showsEnd?.message === "Serves." && showsEnd.cause === undefined
    )
    assert.strictEqual(after?.phase, "activated")
    assert.isUndefined(after?.failure)
  }).pipe(Effect.scoped)
)
