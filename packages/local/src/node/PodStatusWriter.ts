import type { KubeClient } from "@seatrial/kube"
import { Effect, Queue, type Scope, Semaphore } from "effect"
import { now } from "./kubeTime.ts"
import { BoundPod, type Condition, namespaceOf } from "./PodObject.ts"
import { type PodFacts, podStatus } from "./podStatus.ts"

export interface PodStatusWriter {
  /** Reports that the facts have changed. */
  readonly changed: Effect.Effect<void>
  /** Writes pending changes and returns when the server has accepted or refused them. */
  readonly flush: Effect.Effect<void>
}

const giveUpAfter = 20

/**
 * Keeps the pod's status at the server up to date. Writes only if the status differs from the last write, and retries
 * while the server is unavailable.
 */
export const makeStatusWriter = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  pod: BoundPod,
  facts: () => PodFacts
): Effect.fn.Return<PodStatusWriter, never, Scope.Scope> {
  const dirty = yield* Queue.sliding<void>(1)
  const one = yield* Semaphore.make(1)
  let written = ""
  let conditions: ReadonlyArray<Condition> = pod.status?.conditions ?? []

  const once = Effect.gen(function* () {
    const status = podStatus(pod, facts(), conditions, yield* now)
    const text = JSON.stringify(status)
    if (text === written) return
    const { name, uid } = pod.metadata
    // With the uid, a write for a pod that was replaced by one with the same name becomes a conflict.
    const object = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: namespaceOf(pod), ...(uid === undefined ? {} : { uid }) }, status }
    yield* kube.applyStatus(BoundPod, object)
    written = text
    conditions = status.conditions
  })
  const flush = Effect.gen(function* () {
    for (let tried = 0; tried < giveUpAfter; tried++) {
      const error = yield* once.pipe(Effect.as(undefined), Effect.catch(Effect.succeed))
      if (error === undefined || error.reason === "NotFound" || error.reason === "Conflict") return
      if (error.reason !== "Retryable") return yield* Effect.logWarning(`The status of pod ${pod.metadata.name} was refused: ${error.message}`)
      yield* Effect.sleep(error.retryAfter ?? Math.min(250 * 2 ** tried, 5_000))
    }
  }).pipe(one.withPermits(1))
  yield* Queue.take(dirty).pipe(Effect.andThen(flush), Effect.forever, Effect.forkScoped)
  return { changed: Effect.asVoid(Queue.offer(dirty, undefined)), flush }
})
