import type { Hub } from "@seatrial/hub"
import type { KubeClient } from "@seatrial/kube"
import type { Runs } from "@seatrial/store"
import { Clock, Effect } from "effect"
import type { HttpClient } from "effect/http"
import { keepVerdict } from "../gather/BootVerdicts.ts"
import type { Gathered } from "../gather/gather.ts"
import { trialAttempts } from "../limits.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { Observation } from "../observation/Observation.ts"
import { endedOf, type WorkKind } from "../observation/work.ts"
import { askMerged } from "./askMerged.ts"
import { benchmarkEngine, makeBenchmarkTurns } from "./benchmarkEngine.ts"
import { checkEngine } from "./checkEngine.ts"
import { compareStart } from "./compareStart.ts"
import type { EngineUnderTrial } from "./EngineUnderTrial.ts"
import { measureEngine } from "./measureEngine.ts"
import { observeStart } from "./observeStart.ts"
import { screenRepository } from "./screenRepository.ts"
import type { WorkRefused, WorkUnavailable } from "./WorkResult.ts"

export type WorkServices = Runs | KubeClient | Hub | HttpClient.HttpClient

/** The background work of that kind for a run. It records its own result, or fails with the reason. */
export type StartWork = (gathered: Gathered, observation: Observation, kind: WorkKind) => Effect.Effect<void, WorkRefused | WorkUnavailable, WorkServices>

/** Screening reads the hub. All other work uses the engine of the run's ready pod. */
export const startWork = (namespace: string, failedCapability: OperatorSettings["failedCapability"] = "withdraw"): StartWork => {
  const trials = {
    checking: (trial: EngineUnderTrial) => Effect.andThen(observeStart(trial), checkEngine(trial)),
    measuring: measureEngine,
    benchmarking: benchmarkEngine(makeBenchmarkTurns())
  } as const
  return ({ bootVerdicts, hostClasses, mergedAnswers, node, podClass, pods, run }, observation, kind) => {
    const { engine, pod } = observation
    if (kind === "screening") return screenRepository(run, hostClasses)
    if (run.revision === null || podClass === null || engine === null || pod === null || pod.url === null) {
      return Effect.die(new Error(`${run.id} has no engine to try`))
    }
    const enginePod = pods.find(({ metadata }) => metadata.name === pod.name)
    const merged = mergedAnswers.get(run.id) ?? null
    const trial = { run, revision: run.revision, podClass, engine, namespace, pod, url: pod.url, enginePod, node, failedCapability, merged }
    if (kind === "fidelity") return askMerged(trial, mergedAnswers, endedOf(observation, "fidelity")?.isEngineError)
    if (kind === "boot") return compareStart(trial, bootVerdicts, (endedOf(observation, "boot")?.attempts ?? 0) >= trialAttempts - 1)
    // The fingerprints were taken from the engine that was checked.
    const checked = Effect.map(Clock.currentTimeMillis, (at) => keepVerdict(bootVerdicts, trial.run.engineRun, pod, { outcome: "same", message: "", at }))
    return kind === "checking" ? Effect.andThen(trials.checking(trial), checked) : trials[kind](trial)
  }
}
