import { adapterModel, adapterName } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import { KubeClient } from "@seatrial/kube"
import { type Run, type RunRevision, Runs } from "@seatrial/store"
import { makeEngineClient, runBenchmark, runSuite, type Subject, workload } from "@seatrial/trial"
import { type Duration, Effect } from "effect"
import type { PodClass } from "../resources/HostClassResource.ts"
import { persist } from "./persist.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** One engine that is ready, and what it was started for. */
export interface EngineUnderTrial {
  readonly run: Run
  readonly revision: RunRevision
  readonly podClass: PodClass
  readonly engine: EngineAdapter
  readonly namespace: string
  readonly pod: string
  readonly url: string
}

const subjectOf = Effect.fnUntraced(function* ({ engine, podClass, revision, run, url }: EngineUnderTrial, timeout: Duration.Input) {
  const { gpu_count, gpu_pool } = podClass.hostClass
  const adapted = revision.facts.adapter !== undefined
  const subject: Subject = {
    client: yield* makeEngineClient(url, timeout),
    servedName: adapted ? adapterModel(engine.runtime) : run.model,
    listedName: adapted ? adapterName : run.model,
    takesAnyName: engine.names === "any",
    maxContext: revision.settings.max_context,
    engineVersion: revision.engineVersion,
    vocabSize: revision.facts.config.vocab_size,
    chat: revision.facts.chat_template !== null,
    card: `${gpu_pool} x${gpu_count}`
  }
  return subject
})

const unavailable = ({ message }: { readonly message: string }) => new WorkUnavailable({ message })

/** Runs the checks against the engine itself and records their report. */
export const checkEngine = Effect.fn("checkEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const subject = yield* subjectOf(trial, `${60 + Math.ceil(trial.revision.settings.max_context / 500)} seconds`)
  const report = yield* Effect.mapError(runSuite(subject), unavailable)
  yield* persist(runs.recordChecks(trial.run.id, trial.run.orgId, report))
})

/** Reads the engine's own figures from its metrics and its log, and records them. */
export const measureEngine = Effect.fn("measureEngine")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const kube = yield* KubeClient
  const { client } = yield* subjectOf(trial, "30 seconds")
  const metrics = yield* Effect.mapError(client.get("/metrics"), unavailable)
  if (metrics.status !== 200) return yield* new WorkUnavailable({ message: `The engine's metrics answered with status ${metrics.status}.` })
  const log = yield* Effect.mapError(kube.podLog(trial.pod, trial.namespace, { tailLines: 2_000 }), () =>
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
