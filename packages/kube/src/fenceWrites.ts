import { Effect } from "effect"
import type { KubeClient } from "./KubeClient.ts"
import { KubeError } from "./KubeError.ts"

const refused = new KubeError({ reason: "Retryable", message: "not sent: the lease has run out" })

/** The client, whose writes fail unsent (`Retryable`) while `mayWrite` is false. What was sent before is not taken back. */
export const fenceWrites = (client: KubeClient["Service"], mayWrite: Effect.Effect<boolean>): KubeClient["Service"] => {
  const fence = <A>(write: Effect.Effect<A, KubeError>) => Effect.flatMap(mayWrite, (may) => (may ? write : Effect.fail(refused)))
  return {
    ...client,
    create: (resource, object) => fence(client.create(resource, object)),
    update: (resource, object) => fence(client.update(resource, object)),
    updateStatus: (resource, object) => fence(client.updateStatus(resource, object)),
    apply: (resource, object) => fence(client.apply(resource, object)),
    applyStatus: (resource, object) => fence(client.applyStatus(resource, object)),
    mergePatch: (resource, name, namespace, patch) => fence(client.mergePatch(resource, name, namespace, patch)),
    remove: (resource, name, namespace, options) => fence(client.remove(resource, name, namespace, options))
  }
}
