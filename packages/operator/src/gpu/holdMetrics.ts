import type { OpenHold } from "@seatrial/store"
import { Clock, Effect } from "effect"
import { operatorMetrics } from "../metrics.ts"

/**
 * How long the metrics keep a deployment that returned its GPUs, milliseconds. This is longer than any scrape interval,
 * and bounded because the number of deployments is not.
 */
const retentionMillis = 600_000

/** `count` writes the held GPUs to the metrics; `none` removes them when this operator stops leading. */
export const makeHoldMetrics = (held: () => ReadonlyArray<OpenHold>) => {
  const published = new Map<string, { readonly organization: string; readonly host_class: string }>()
  const deployments = new Map<string, { readonly labels: { readonly organization: string; readonly deployment: string }; heldAt: number }>()
  let countedAt: number | null = null

  const count = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const seconds = countedAt === null ? 0 : Math.max(0, now - countedAt) / 1_000
    countedAt = now
    const gpus = new Map<string, number>()
    const add = (key: string, more: number) => gpus.set(key, (gpus.get(key) ?? 0) + more)
    for (const { deploymentId, gpus: each, hostClass, organization, silent } of held()) {
      if (silent) continue
      const key = `${organization} ${hostClass}`
      published.set(key, { organization, host_class: hostClass })
      add(key, each)
      deployments.set(deploymentId, { labels: { organization, deployment: deploymentId }, heldAt: now })
      add(deploymentId, each)
    }
    for (const [key, labels] of published) {
      const now = gpus.get(key) ?? 0
      yield* operatorMetrics.gpusHeld.update(labels, now)
      yield* operatorMetrics.gpuSeconds.update(labels, now * seconds)
      if (now === 0) published.delete(key)
    }
    for (const [id, { heldAt, labels }] of deployments) {
      if (now < heldAt + retentionMillis) {
        yield* operatorMetrics.deploymentGpuSeconds.update(labels, (gpus.get(id) ?? 0) * seconds)
        continue
      }
      deployments.delete(id)
      yield* operatorMetrics.deploymentGpuSeconds.remove(labels)
    }
  })
  const none = Effect.gen(function* () {
    yield* Effect.forEach(published.values(), operatorMetrics.gpusHeld.remove, { discard: true })
    yield* Effect.forEach(deployments.values(), ({ labels }) => operatorMetrics.deploymentGpuSeconds.remove(labels), { discard: true })
  })
  return { count, none }
}
