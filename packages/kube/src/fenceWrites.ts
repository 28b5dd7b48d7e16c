import { Effect } from "effect"
import type { KubeClient } from "./KubeClient.ts"
import type { KubeError } from "./KubeError.ts"
import { MayWrite, notSent } from "./KubeTransport.ts"

/**
 * A client whose writes fail unsent (`Retryable`) while `mayWrite` returns false, even if that changes while they wait
 * for a connection. Writes that were already sent are not undone.
 */
export const fenceWrites = (client: KubeClient["Service"], mayWrite: () => boolean): KubeClient["Service"] => {
  const fence = <A>(write: Effect.Effect<A, KubeError>) =>
    Effect.suspend(() => (mayWrite() ? Effect.provideService(write, MayWrite, mayWrite) : Effect.fail(notSent)))
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
