import { defineResource, KubeClient, ObjectMetaSchema } from "@seatrial/kube"
import { Effect, Option, Schema } from "effect"
import { isStale } from "../apply/ignoreNotFound.ts"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { finalizer } from "../resources/objectNames.ts"

/** A `ModelDeployment` with all its finalizers. The watches keep only the operator's own. */
const FinalizedDeployment = defineResource({ ...ModelDeployment, schema: Schema.Struct({ metadata: ObjectMetaSchema }) })

/** The metadata of an object as a watch keeps it. */
interface Known {
  readonly name: string
  readonly namespace?: string | undefined
  readonly uid?: string | undefined
  readonly generation?: number | undefined
  readonly finalizers?: ReadonlyArray<string> | undefined
}

/**
 * Adds or removes the operator's finalizer. False if the object is gone, was replaced, or changes at the same time. Nothing
 * is added to an object that is being deleted, because the API server refuses that, or that has another specification,
 * because it needs another decision.
 */
export const setFinalizer = Effect.fnUntraced(
  function* ({ metadata: { finalizers: own = [], generation, name, namespace, uid } }: { readonly metadata: Known }, wanted: boolean) {
    if (own.includes(finalizer) === wanted) return true
    const kube = yield* KubeClient
    const current = Option.getOrNull(yield* kube.get(FinalizedDeployment, name, namespace))
    if (current === null || current.metadata.uid !== uid) return false
    const { deletionTimestamp, finalizers = [], resourceVersion } = current.metadata
    if (finalizers.includes(finalizer) === wanted) return true
    if (wanted && (deletionTimestamp !== undefined || current.metadata.generation !== generation)) return false
    const next = wanted ? [...finalizers, finalizer] : finalizers.filter((one) => one !== finalizer)
    const patch = { metadata: { finalizers: next, ...(resourceVersion === undefined ? {} : { resourceVersion }) } }
    return yield* Effect.as(kube.mergePatch(FinalizedDeployment, name, namespace, patch), true)
  },
  Effect.catchIf(isStale, () => Effect.succeed(false))
)
