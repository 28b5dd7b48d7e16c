import { KubeClient, type KubeError, Namespace, type OwnerReference } from "@seatrial/kube"
import { Effect, Option } from "effect"

/** The controlling owner of all engine pods; null if it cannot be read. */
export type EngineOwner = Effect.Effect<OwnerReference | null, KubeError, KubeClient>

const unknownOwner = (namespace: string) =>
  Effect.as(Effect.logWarning(`the namespace ${namespace} cannot be read: kubectl drain will need --force for engine pods`), null)

/**
 * Makes the owner of engine pods: their namespace, which exists for as long as they can. Pods without a controlling
 * owner need `kubectl drain --force`, and any other owner may be deleted while its engine must serve on. It is read
 * once, because a namespace keeps its UID.
 */
export const makeEngineOwner = (namespace: string): EngineOwner => {
  let owner: OwnerReference | null = null
  return Effect.gen(function* () {
    if (owner !== null) return owner
    const kube = yield* KubeClient
    const object = yield* kube.get(Namespace, namespace).pipe(
      Effect.catchIf(
        ({ reason }) => reason === "Denied",
        () => Effect.succeedNone
      )
    )
    if (Option.isNone(object)) return yield* unknownOwner(namespace)
    const { name, uid = "" } = object.value.metadata
    owner = { apiVersion: "v1", kind: Namespace.kind, name, uid, controller: true }
    return owner
  })
}
