import type { OpenHold } from "@seatrial/store"
import { Clock, Effect } from "effect"
import { operatorMetrics } from "../metrics.ts"

/** Shows in the metrics what is held, each time that it is called; `none` where nobody knows any more. */
export const countHeld = (held: () => ReadonlyArray<OpenHold>) => {
  const shown = new Map<string, { readonly organization: string; readonly host_class: string }>()
  let countedAt: number | null = null

  const count = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const seconds = countedAt === null ? 0 : Math.max(0, now - countedAt) / 1_000
    countedAt = now
    const gpus = new Map<string, number>()
    for (const { gpus: each, hostClass, organization, silent } of held()) {
      if (silent) continue
      const key = `${organization} ${hostClass}`
      shown.set(key, { organization, host_class: hostClass })
      gpus.set(key, (gpus.get(key) ?? 0) + each)
    }
    for (const [key, labels] of shown) {
      const now = gpus.get(key) ?? 0
      yield* operatorMetrics.gpusHeld.update(labels, now)
      yield* operatorMetrics.gpuSeconds.update(labels, now * seconds)
      if (now === 0) shown.delete(key)
    }
  })
  return { count, none: Effect.suspend(() => Effect.forEach(shown.values(), operatorMetrics.gpusHeld.remove, { discard: true })) }
}
