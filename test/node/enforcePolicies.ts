import { type KubeClient, type KubeError, Namespace } from "@seatrial/kube"
import { Effect, type Scope, Semaphore } from "effect"
import { AddressedPod, NetworkPolicy } from "./PolicyObjects.ts"
import { nodes } from "./places.ts"
import { policyRules } from "./policyRules.ts"
import { runTool, type ToolFailed } from "./runTool.ts"

const applyTo = (rules: string) =>
  Effect.forEach(nodes, ({ namespace }) => runTool("nsenter", [`--net=/run/netns/${namespace}`, "nft", "-f", "-"], { input: rules }), { discard: true })

const readWorld = (kube: KubeClient["Service"]) =>
  Effect.all({ pods: kube.list(AddressedPod, {}), namespaces: kube.list(Namespace, {}), policies: kube.list(NetworkPolicy, {}) })

/** Enforces the cluster's network policies on all nodes until the scope closes. They follow pods within half a second; the result applies them at once. */
export const enforcePolicies = Effect.fnUntraced(function* (
  kube: KubeClient["Service"]
): Effect.fn.Return<Effect.Effect<void, KubeError | ToolFailed>, KubeError | ToolFailed, Scope.Scope> {
  let applied = ""
  const oneAtATime = yield* Semaphore.make(1)
  const enforce: Effect.Effect<void, KubeError | ToolFailed> = Effect.gen(function* () {
    const rules = policyRules(yield* readWorld(kube))
    if (rules === applied) return
    yield* applyTo(rules)
    applied = rules
  }).pipe(oneAtATime.withPermits(1))
  yield* enforce
  const again = Effect.catch(enforce, (error) => Effect.logWarning(`Network policies are not applied: ${error.message}`))
  yield* Effect.forkScoped(Effect.forever(Effect.delay(again, "300 millis")))
  return enforce
})
