import { DeploymentId } from "@seatrial/domain"
import { Pod, PodDisruptionBudget } from "@seatrial/kube"
import { ModelDeployment, objectName } from "@seatrial/operator"
import { Effect, Schema } from "effect"
import { objectsOfRuns, patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { type Lane, namespace } from "./Lane.ts"

export const decodeId = Schema.decodeUnknownSync(DeploymentId)

const Hold = Schema.Struct({ pod_uid: Schema.String, deployment_id: Schema.String, released: Schema.Boolean })
const holds = "SELECT pod_uid, deployment_id, released_at IS NOT NULL AS released FROM gpu_holds ORDER BY pod_uid"

/**
 * Waits for the expected end of a lane: only the engines of `run` exist (null: none), gateways know them, they have their
 * disruption budget and an open GPU hold each, no other object of a run remains, and every engine pod that had GPUs is
 * counted.
 */
export const settled = Effect.fnUntraced(function* (lane: Lane, run: string | null, engines = 1) {
  const { kube } = lane
  const one = (what: string) => (run === null ? "" : what)
  const each = (what: string) => one(Array.from({ length: engines }, () => what).join())
  yield* eventually("the cluster holds the engines that serve and nothing else", objectsOfRuns(kube), (objects) => objects.join() === each(`Pod ${run}`))
  yield* eventually("gateways know that engine and no other", lane.published, (runs) => runs.join() === one(`${run}`))
  const budgets = Effect.map(patiently(kube.list(PodDisruptionBudget, { namespace })), (found) => found.map(({ metadata }) => metadata.name))
  yield* eventually("it alone is kept from being evicted", budgets, (names) => names.join() === one(run === null ? "" : objectName(decodeId(run))))
  const counted = Effect.gen(function* () {
    const rows = yield* lane.select(Schema.Array(Hold), holds)
    const pods = yield* patiently(kube.list(Pod, { namespace }))
    const uids = new Set(rows.map(({ pod_uid }) => pod_uid))
    const open = rows.filter(({ released }) => !released)
    return {
      runs: open.map(({ deployment_id }) => deployment_id),
      held: open.map(({ pod_uid }) => pod_uid).join(),
      placed: pods
        .map(({ metadata }) => metadata.uid)
        .sort()
        .join(),
      uncounted: [...lane.kubelet.placed].filter((uid) => !uids.has(uid))
    }
  })
  yield* eventually(
    "GPUs are counted for each engine that had them",
    counted,
    ({ held, placed, runs, uncounted }) => runs.join() === each(`${run}`) && held === placed && uncounted.length === 0
  )
})

/** Waits until the custom resource of a run shows its end, or is gone because it was deleted afterwards. The operator does not create it again. */
export const showsEnd = Effect.fnUntraced(function* ({ kube }: Lane, id: string, status: string, serves: boolean) {
  const phase = Effect.map(patiently(kube.get(ModelDeployment, objectName(decodeId(id)), namespace)), (found) =>
    found._tag === "Some" ? found.value.status?.phase : serves ? undefined : status
  )
  yield* eventually(`the custom resource of ${id} shows its end`, phase, (said) => said === status)
})
