import { Effect } from "effect"
import type { KubeClient } from "./KubeClient.ts"
import type { KubeError } from "./KubeError.ts"
import { MayWrite, notSent } from "./KubeTransport.ts"

/** The client, whose writes fail unsent (`Retryable`) while `mayWrite` is false, also where it becomes so while they wait for a connection. What was sent before is not taken back. */
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
