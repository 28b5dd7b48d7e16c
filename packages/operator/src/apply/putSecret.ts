import { KubeClient, KubeError, Secret } from "@seatrial/kube"
import { Effect } from "effect"

const isThere = (error: KubeError) => error.statusReason === "AlreadyExists"

/**
 * Creates a Secret. A Secret left by an earlier attempt is deleted first, because it may hold an old token. The
 * operator has no permission to update Secrets, because the response of an update contains the Secret. If a finalizer
 * holds the old Secret, someone else must remove it.
 */
export const putSecret = Effect.fnUntraced(function* (secret: Secret) {
  const kube = yield* KubeClient
  const { name, namespace } = secret.metadata
  const make = kube.create(Secret, secret)
  const message = `The Secret ${name} of an earlier attempt is being deleted, but a finalizer keeps it. Remove the finalizer (kubectl -n ${namespace} edit secret ${name}).`
  const again = Effect.catchIf(make, isThere, () => Effect.fail(new KubeError({ reason: "Invalid", message })))
  yield* Effect.catchIf(make, isThere, () => Effect.andThen(kube.remove(Secret, name, namespace), again))
})
