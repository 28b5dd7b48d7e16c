import { KubeClient, Secret } from "@seatrial/kube"
import { Effect } from "effect"

/**
 * Makes a Secret. One that an earlier try left goes first, as it may hold another token: whoever may change a Secret can read it in the answer, so the operator has no such
 * right.
 */
export const putSecret = Effect.fnUntraced(function* (secret: Secret) {
  const kube = yield* KubeClient
  const { name, namespace } = secret.metadata
  const make = kube.create(Secret, secret)
  yield* make.pipe(
    Effect.catchIf(
      (error) => error.statusReason === "AlreadyExists",
      () => Effect.andThen(kube.remove(Secret, name, namespace), make)
    )
  )
})
