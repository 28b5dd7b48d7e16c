import { KubeClient, KubeError, Secret } from "@seatrial/kube"
import { Effect } from "effect"

const isThere = (error: KubeError) => error.statusReason === "AlreadyExists"

/**
 * Makes a Secret. One that an earlier try left goes first, as it may hold another token: whoever may change a Secret can read it in the answer, so the operator has no such
 * right. Where a finalizer keeps that one, somebody else has to let it go.
 */
export const putSecret = Effect.fnUntraced(function* (secret: Secret) {
  const kube = yield* KubeClient
  const { name, namespace } = secret.metadata
  const make = kube.create(Secret, secret)
  const message = `The Secret ${name} of an earlier try is being deleted, and a finalizer keeps it: it is waited for until whoever set that takes it away (kubectl -n ${namespace} get secret ${name} -o jsonpath={.metadata.finalizers}).`
  const again = Effect.catchIf(make, isThere, () => Effect.fail(new KubeError({ reason: "Invalid", message })))
  yield* Effect.catchIf(make, isThere, () => Effect.andThen(kube.remove(Secret, name, namespace), again))
})
