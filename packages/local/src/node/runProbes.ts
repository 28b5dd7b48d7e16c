import { Deferred, Effect } from "effect"
import { checkProbe, type ProbeTarget } from "./checkProbe.ts"
import type { Probe } from "./PodObject.ts"

export interface ProbeReport {
  readonly started: Effect.Effect<void>
  readonly ready: (ready: boolean) => Effect.Effect<void>
  readonly unhealthy: (kind: "Startup" | "Readiness" | "Liveness", message: string) => Effect.Effect<void>
}

/** Kubernetes' defaults for the fields that a probe leaves out. */
const probeDefaults = { initialDelaySeconds: 0, successThreshold: 1, failureThreshold: 3, periodSeconds: 10 }

/** Repeats a probe and reports each time a threshold is crossed. Ends when `onThreshold` returns true. */
const watch = Effect.fnUntraced(function* (
  target: ProbeTarget,
  probe: Probe,
  kind: "Startup" | "Readiness" | "Liveness",
  report: ProbeReport,
  onThreshold: (passed: boolean, message: string) => Effect.Effect<boolean>
) {
  const { failureThreshold, initialDelaySeconds, periodSeconds, successThreshold } = { ...probeDefaults, ...probe }
  yield* Effect.sleep(`${initialDelaySeconds} seconds`)
  let passes = 0
  let failures = 0
  while (true) {
    const message = yield* checkProbe(target, probe).pipe(
      Effect.as(undefined),
      Effect.catch((failure) => Effect.succeed(failure.message))
    )
    passes = message === undefined ? passes + 1 : 0
    failures = message === undefined ? 0 : failures + 1
    if (message !== undefined) yield* report.unhealthy(kind, message)
    if (passes === successThreshold && (yield* onThreshold(true, ""))) return
    if (failures === failureThreshold && (yield* onThreshold(false, message ?? ""))) return
    yield* Effect.sleep(`${periodSeconds} seconds`)
  }
})

/**
 * The probes of a container, as a kubelet runs them. Other probes begin after the startup probe has passed. A container
 * without a readiness probe is ready when it has started. Ends with the reason if the container must be killed.
 */
export const runProbes = Effect.fnUntraced(function* (target: ProbeTarget, report: ProbeReport): Effect.fn.Return<string> {
  const { startupProbe, readinessProbe, livenessProbe } = target.container
  const killed = yield* Deferred.make<string>()
  const fatal = (kind: string) => (passed: boolean, message: string) =>
    passed ? Effect.succeed(false) : Effect.as(Deferred.succeed(killed, `${kind} probe failed: ${message}`), true)
  const kill = Deferred.await(killed)
  const endless = (effect: Effect.Effect<void>) => Effect.andThen(effect, Effect.never)

  if (startupProbe !== undefined) {
    const failed = fatal("startup")
    yield* watch(target, startupProbe, "Startup", report, (passed, message) => (passed ? Effect.succeed(true) : failed(passed, message)))
    if (yield* Deferred.isDone(killed)) return yield* kill
  }
  yield* report.started
  const readiness =
    readinessProbe === undefined ? report.ready(true) : watch(target, readinessProbe, "Readiness", report, (passed) => Effect.as(report.ready(passed), false))
  const liveness = livenessProbe === undefined ? Effect.void : watch(target, livenessProbe, "Liveness", report, fatal("liveness"))
  return yield* Effect.raceAll([kill, endless(readiness), endless(liveness)])
})
