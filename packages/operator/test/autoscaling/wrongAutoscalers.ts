import { desiredReplicas } from "../../src/decide/desiredReplicas.ts"
import type { Promised } from "./promises.ts"
import type { Autoscaler } from "./simulate.ts"

const now = (history: Parameters<Autoscaler>[0]): number => history.samples.at(-1)?.requests ?? 0
const needed: (...input: Parameters<Autoscaler>) => number = (history, { capacity }, { maxReplicas, minReplicas, target }) =>
  Math.min(maxReplicas, Math.max(1, minReplicas, Math.ceil(now(history) / (capacity * target))))

/** Wrong autoscalers, with the promise that each of them breaks. */
export const wrongAutoscalers: Readonly<Record<string, { readonly breaks: Promised; readonly autoscaler: Autoscaler }>> = {
  "ignores engines that are starting": {
    breaks: "no more engines than the load needs",
    autoscaler: (history, curve, settings, at, ready) => {
      const lacking = Math.ceil((now(history) - ready * curve.capacity) / (curve.capacity * settings.target))
      return lacking > 0 ? { replicas: Math.min(settings.maxReplicas, history.replicas + lacking) } : desiredReplicas(history, curve, settings, at)
    }
  },
  "never stops an engine": {
    breaks: "hardly more engine-hours than an oracle",
    autoscaler: (history, curve, settings, at) => ({ replicas: Math.max(history.replicas, desiredReplicas(history, curve, settings, at).replicas) })
  },
  "starts one engine per minute": {
    breaks: "a load is met within one start and one period",
    autoscaler: (history, curve, settings, at) => {
      const { replicas } = desiredReplicas(history, curve, settings, at)
      if (replicas <= history.replicas) return { replicas }
      return { replicas: history.replicas + (at - history.changedAt >= 60_000 ? 1 : 0) }
    }
  },
  "waits until a load has lasted": {
    breaks: "a load is met within one start and one period",
    autoscaler: (history, curve, settings, at) => {
      const { replicas } = desiredReplicas(history, curve, settings, at)
      return replicas > history.replicas && at - history.changedAt < 60_000 ? { replicas: history.replicas } : { replicas }
    }
  },
  "stops engines at once": {
    breaks: "one engine at a time is stopped, after a whole window",
    autoscaler: (...input) => ({ replicas: needed(...input) })
  },
  "has no window": {
    breaks: "no oscillation",
    autoscaler: (history, curve, settings, at) => desiredReplicas({ ...history, samples: history.samples.slice(-1) }, curve, settings, at)
  },
  "keeps no reserve": {
    breaks: "no oscillation",
    autoscaler: (...input) => ({ replicas: Math.max(input[0].replicas - 1, needed(...input)) })
  },
  "ignores the minimum": {
    breaks: "never fewer engines than the minimum",
    autoscaler: (history, curve, settings, at) => desiredReplicas(history, curve, { ...settings, minReplicas: 1 }, at)
  },
  "ignores the maximum": {
    breaks: "never more engines than the maximum",
    autoscaler: (history, curve, settings, at) => desiredReplicas(history, curve, { ...settings, maxReplicas: 64 }, at)
  }
}
