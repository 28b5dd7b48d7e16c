import { modelCapabilities, withdrawCapabilities } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import { KubeClient } from "@seatrial/kube"
import { type Run, type RunRevision, Runs } from "@seatrial/store"
import { runBenchmark, runSuite, workload } from "@seatrial/trial"
import { Effect } from "effect"
import type { PodSeen } from "../decide/Observation.ts"
import type { PodClass } from "../resources/HostClassResource.ts"
import { persist } from "./persist.ts"
import { subjectOf, suiteSubjectOf } from "./trialSubject.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** One engine that is ready, and what it was started for. */
export interface EngineUnderTrial {
  readonly run: Run
  readonly revision: RunRevision
  readonly podClass: PodClass
  readonly engine: EngineAdapter
  readonly namespace: string
  readonly pod: PodSeen
  readonly url: string
  /** What a capability does that its check did not see working. */
  readonly failedCapability: "withdraw" | "fail"
}

const unavailable = ({ message }: { readonly message: string }) => new WorkUnavailable({ message })

/** Runs the checks against the engine itself and records their report. What a check did not see working is taken from what the revision can do. */
export const checkEngine = Effect.fn("checkEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const { engine, failedCapability, revision, run } = trial
  const subject = yield* suiteSubjectOf(trial, `${60 + Math.ceil(revision.settings.max_context / 300)} seconds`)
  const { likelihood, report } = yield* Effect.mapError(runSuite(subject), unavailable)
  const { withdrawn = [] } = report
  const fails = failedCapability === "fail" && withdrawn.length > 0
  const kept = {
    ...(likelihood === null ? {} : { likelihood }),
    ...(withdrawn.length === 0 ? {} : { capabilities: withdrawCapabilities(modelCapabilities(engine.served, revision.facts), withdrawn) })
  }
  yield* persist(runs.recordChecks(run.id, run.orgId, fails ? { ...report, passed: false } : report, kept))
})

/** Reads the engine's own figures from its metrics and its log, and records them. */
export const measureEngine = Effect.fn("measureEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const kube = yield* KubeClient
  const { client } = yield* subjectOf(trial, "30 seconds")
  const metrics = yield* Effect.mapError(client.get("/metrics"), unavailable)
  if (metrics.status !== 200) return yield* new WorkUnavailable({ message: `The engine's metrics answered with status ${metrics.status}.` })
  const log = yield* Effect.mapError(kube.podLog(trial.pod.name, trial.namespace, { tailLines: 2_000 }), () =>
    unavailable({ message: "The engine's log could not be read." })
  )
  yield* persist(runs.recordMeasured(trial.run.id, trial.run.orgId, trial.engine.measured({ metrics: metrics.text, log })))
})

/** Loads the engine within the host class's budget and records what came. */
export const benchmarkEngine = Effect.fn("benchmarkEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const { podClass, revision } = trial
  const subject = yield* subjectOf(trial, "90 seconds")
  // An engine that is away is no slow engine.
  yield* Effect.mapError(subject.client.get("/v1/models"), unavailable)
  const plan = workload(podClass.benchmarkSeconds, revision.settings.max_context, revision.measured?.kv_cache_tokens ?? null, revision.settings)
  yield* persist(runs.recordBenchmark(trial.run.id, trial.run.orgId, yield* runBenchmark(subject, plan)))
})
