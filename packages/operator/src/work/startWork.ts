import type { Hub } from "@seatrial/hub"
import type { KubeClient } from "@seatrial/kube"
import type { Runs } from "@seatrial/store"
import { lacksReference } from "@seatrial/trial"
import { Clock, Effect } from "effect"
import type { HttpClient } from "effect/http"
import { keepVerdict } from "../gather/BootVerdicts.ts"
import type { Gathered } from "../gather/gather.ts"
import { trialAttempts } from "../limits.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { Observation } from "../observation/Observation.ts"
import { whichStart } from "../observation/ObservedPod.ts"
import { isComing, missingCode } from "../observation/ObservedReference.ts"
import { type EngineWork, endedOf, needsEngine, type WorkKind } from "../observation/work.ts"
import { askMerged } from "./askMerged.ts"
import { benchmarkEngine, makeBenchmarkTurns } from "./benchmarkEngine.ts"
import { checkEngine, compareEngine, recordFindings } from "./checkEngine.ts"
import { compareStart } from "./compareStart.ts"
import type { EngineUnderTrial } from "./EngineUnderTrial.ts"
import { measureEngine } from "./measureEngine.ts"
import { prepareReference } from "./prepareReference.ts"
import { recordStart } from "./recordStart.ts"
import { screenRepository } from "./screenRepository.ts"
import { type WorkRefused, WorkUnavailable } from "./WorkResult.ts"

export type WorkServices = Runs | KubeClient | Hub | HttpClient.HttpClient

/** The background work of that kind for a run. It records its own result, or fails with the reason. */
export type StartWork = (gathered: Gathered, observation: Observation, kind: WorkKind) => Effect.Effect<void, WorkRefused | WorkUnavailable, WorkServices>

interface TrialInput {
  readonly trial: EngineUnderTrial
  readonly gathered: Gathered
  readonly observation: Observation
}

type Trials = Readonly<Record<EngineWork, (input: TrialInput) => Effect.Effect<void, WorkRefused | WorkUnavailable, WorkServices>>>

/** The fingerprints were taken from the engine that was checked. */
const keepChecked = ({ gathered: { bootVerdicts }, trial: { pod } }: TrialInput) =>
  Effect.map(Clock.currentTimeMillis, (at) => keepVerdict(bootVerdicts, pod, { outcome: "same", message: "", at }))

/**
 * Runs the checks and records their report. If a reference is still computed, the report is held, and the engine is
 * compared later.
 */
const check = Effect.fnUntraced(function* (input: TrialInput) {
  const { gathered, observation, trial } = input
  const findings = yield* checkEngine(trial)
  const since = yield* Clock.currentTimeMillis
  const holds = isComing(observation.reference) && lacksReference(findings.report)
  if (holds) gathered.heldReports.set(trial.run.id, { with: whichStart(trial.pod), since, findings })
  else yield* recordFindings(trial, findings)
  yield* keepChecked(input)
})

const compare = Effect.fnUntraced(function* ({ gathered: { heldReports }, trial }: TrialInput) {
  const held = heldReports.get(trial.run.id)
  if (held === undefined) return yield* new WorkUnavailable({ message: "The report of the checks was lost." })
  yield* recordFindings(trial, yield* compareEngine(trial, held.findings))
})

const makeTrials = (): Trials => {
  const benchmark = benchmarkEngine(makeBenchmarkTurns())
  return {
    fidelity: ({ gathered, observation, trial }) => askMerged(trial, gathered.mergedAnswers, endedOf(observation, "fidelity")?.isEngineError),
    boot: ({ gathered, observation, trial }) => compareStart(trial, gathered, (endedOf(observation, "boot")?.attempts ?? 0) >= trialAttempts - 1),
    checking: (input) => Effect.andThen(recordStart(input.trial), check(input)),
    comparing: compare,
    measuring: ({ trial }) => measureEngine(trial),
    benchmarking: ({ trial }) => benchmark(trial)
  }
}

type Settings = Pick<EngineUnderTrial, "failedCapability" | "namespace">

/** The engine of the run's ready pod; null if there is none. */
const engineUnderTrial = (
  { mergedAnswers, node, podClass, pods, run }: Gathered,
  { engine, pod, reference }: Observation,
  settings: Settings
): EngineUnderTrial | null => {
  const { revision } = run
  if (revision === null || podClass === null || engine === null || pod === null || pod.url === null) return null
  const enginePod = pods.find(({ metadata }) => metadata.name === pod.name)
  return {
    ...settings,
    run,
    revision,
    podClass,
    engine,
    pod,
    url: pod.url,
    enginePod,
    node,
    merged: mergedAnswers.get(run.id) ?? null,
    noReference: missingCode(reference)
  }
}

/** The settings that work depends on. */
export type WorkSettings = Pick<OperatorSettings, "failedCapability" | "fetchImage" | "namespace" | "pullSecrets" | "weightsClaim">

/** Screening and the preparation of a reference read the hub. All other work uses the engine of the run's ready pod. */
export const startWork = (settings: WorkSettings): StartWork => {
  const { failedCapability, namespace } = settings
  const trials = makeTrials()
  return (gathered, observation, kind) => {
    if (kind === "preparation") return prepareReference(gathered, settings)
    if (!needsEngine(kind)) return screenRepository(gathered.run, gathered.hostClasses)
    const trial = engineUnderTrial(gathered, observation, { namespace, failedCapability })
    return trial === null ? Effect.die(new Error(`${gathered.run.id} has no engine to try`)) : trials[kind]({ trial, gathered, observation })
  }
}
