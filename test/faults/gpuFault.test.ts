import { assert, it } from "@effect/vitest"
import { Event } from "@seatrial/kube"
import { enginePodName, ModelDeployment, objectName } from "@seatrial/operator"
import { Effect, Option } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { xid } from "./Kubelet.ts"
import { namespace, openLane } from "./Lane.ts"
import { decodeId } from "./rightEnd.ts"
import { serveFirst } from "./serveFirst.ts"

it.live("a card that failed is told of to whoever looks at the deployment, in its node's words, and the engine comes back without the model being blamed", () =>
  Effect.gen(function* () {
    const lane = yield* openLane
    const { kube, kubelet } = lane
    const { run } = yield* serveFirst(lane)
    const id = decodeId(run)
    const name = (yield* kubelet.nodeOf(enginePodName(id))) ?? ""
    yield* kubelet.failForGpu(enginePodName(id))
    const told = yield* eventually(
      "an event of the card",
      Effect.map(patiently(kube.list(Event, { namespace })), (events) => events.find(({ reason }) => reason === "GpuFault")),
      (event) => event !== undefined
    )
    assert.deepInclude(told, { type: "Warning", message: `Node/${name}: XIDError: ${xid.message}` })
    assert.strictEqual(told?.involvedObject.name, objectName(id))
    const after = yield* eventually(
      "a model that serves again",
      Effect.map(patiently(kube.get(ModelDeployment, objectName(id), namespace)), (resource) => Option.getOrThrow(resource).status),
      (shown) => shown?.message === "Serves." && shown.cause === undefined
    )
    assert.strictEqual(after?.phase, "activated")
    assert.isUndefined(after?.failure)
  }).pipe(Effect.scoped)
)
