import { type Benchmark, type DownloadProgress, isFinished, type Measured, type QueueProgress, samplingChoice, type WaitReason } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { isServed } from "../observation/isServed.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { type Refusal, refusalReasons } from "../observation/Refusal.ts"
import type { Condition } from "../resources/Condition.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { weightsManifest } from "../resources/weightFiles.ts"
import { availableVerdict, latestStatus, progressVerdicts, servingStatus, type Verdict } from "./modelVerdicts.ts"
import { camelCase, capitalized } from "./reasons.ts"
import { type EngineCounts, noEngines, scaleStatus, scalingVerdict } from "./scaleStatus.ts"

const iso = (millis: number): string => new Date(millis).toISOString()

interface StatusInput {
  readonly run: Run
  readonly pod: ObservedPod | null
  readonly engines?: EngineCounts
  readonly message: string
  readonly cause: ModelDeploymentStatus["cause"]
  readonly queue: QueueProgress | null
  readonly download: DownloadProgress | null
  /** The current generation of the object. The run may belong to an earlier one. */
  readonly generation: number
  /** The current status. An unchanged condition keeps its transition time. */
  readonly before: ModelDeploymentStatus | undefined
  /** Whether the model serves but has no engine because it gets no requests. */
  readonly idle?: boolean
  /** Why the run has no GPUs, if its organization has no funds; otherwise null. */
  readonly unfunded?: string | null
  /** Why the ready engine has no traffic; null if nothing withholds it. */
  readonly withheld?: string | null
  /** The object that the API server refuses; null if it refuses none. */
  readonly refusal?: Refusal | null
  /** Why the model has stopped halfway to this revision; null if it has not. */
  readonly stopped?: string | null
  /** The message about an engine whose probes differ from the trial; null if there is none. */
  readonly suspicion?: string | null
  /** See `editProblem`. */
  readonly invalid?: string | null
  /** Whether its host class does not exist. */
  readonly classGone?: boolean
  /** Unix milliseconds. */
  readonly now: number
}

/** The result of the run. The later state of the engine is shown by `Ready`. */
const activatedAs = ({ serve }: Run): string =>
  serve
    ? "The run succeeded: its revision was verified and took over the model's traffic."
    : "The run succeeded: its revision was verified. It takes no traffic (serve: false)."

/** The generation for which the run was created. */
const generationOf = ({ generation, run }: StatusInput): number => run.applied?.current?.generation ?? generation

/**
 * Whether the current specification has a run. The condition of another specification stays: the controller of applied
 * objects sets it.
 */
const accepted = (input: StatusInput): Condition | undefined => {
  const { before, generation, invalid = null, now, run } = input
  const earlier = before?.conditions?.find(({ type }) => type === "Accepted")
  if (generationOf(input) !== generation) return earlier
  const status = invalid === null ? "True" : "False"
  return {
    type: "Accepted",
    status,
    reason: invalid === null ? "Accepted" : "Invalid",
    message: invalid ?? `Accepted as deployment ${run.id}.`,
    lastTransitionTime: earlier?.status === status ? earlier.lastTransitionTime : iso(now),
    observedGeneration: generation
  }
}

/**
 * Why a model that should serve has no engine; null if it should have one. An engine that is about to be deleted
 * accepts no requests.
 */
const whyAway = ({ idle, run, unfunded = null }: StatusInput): string | null =>
  unfunded ?? (idle === true ? "Idle" : run.replacedBy === null ? null : "Replaced")

/** Why a served model does not answer; null if it does. */
const outage = (input: StatusInput): string | null => {
  const { classGone, pod, refusal = null, withheld = null } = input
  const away = whyAway(input)
  if (away !== null) return away
  // The problem of another engine does not count.
  if (pod?.ready === true && !pod.deleting && pod.lost === null) return withheld
  if (refusal?.kind === "pod") return refusalReasons.pod
  if (classGone === true && pod === null) return "HostClassMissing"
  return "EngineNotReady"
}

/** The reason of `Ready` for a run that does not serve. */
const notServing = ({ refusal = null, run, unfunded = null }: StatusInput): string => {
  if (run.phase === "activated" && run.modelDisabled) return "Disabled"
  return unfunded ?? (refusal === null ? capitalized(run.phase) : refusalReasons[refusal.kind])
}

const readyVerdict = (input: StatusInput): Verdict => {
  const reason = isServed(input) ? outage(input) : notServing(input)
  return { holds: reason === null, reason: reason ?? "Serving", message: input.message }
}

const activatedVerdict = ({ message, run }: StatusInput): Verdict => {
  const holds = run.phase === "activated"
  return { holds, reason: capitalized(run.phase), message: holds ? activatedAs(run) : message }
}

const failedVerdict = ({ message, run }: StatusInput): Verdict => {
  const phase = capitalized(run.phase)
  return run.phase === "failed"
    ? { holds: true, reason: camelCase(run.failure?.code ?? phase), message }
    : { holds: false, reason: isFinished(run.phase) ? phase : "InProgress", message: "The run has not failed." }
}

const conditions = (input: StatusInput): ReadonlyArray<Condition> => {
  const { before, message, now, run } = input
  const first = accepted(input)
  const refused = first?.status === "False" ? first : undefined
  const ready = readyVerdict(input)
  const progress = progressVerdicts(run, message, refused, input.stopped ?? null)
  const condition = (type: string, { holds, message, reason }: Verdict, observedGeneration = generationOf(input)): Condition => {
    const status = holds ? "True" : "False"
    const earlier = before?.conditions?.find((candidate) => candidate.type === type)
    const lastTransitionTime = earlier?.status === status ? earlier.lastTransitionTime : iso(now)
    return { type, status, reason, message, lastTransitionTime, observedGeneration }
  }
  const scaling = scalingVerdict(input)
  return [
    ...(first === undefined ? [] : [first]),
    condition("Ready", ready),
    condition("Available", availableVerdict(run, ready)),
    ...(scaling === undefined ? (before?.conditions ?? []).filter(({ type }) => type === "ScalingLimited") : []),
    ...(scaling === undefined || scaling === null ? [] : [condition("ScalingLimited", scaling)]),
    ...(input.suspicion == null ? [] : [condition("Suspect", { holds: true, reason: "AnswersChanged", message: input.suspicion })]),
    ...progress.map(({ type, verdict }) => condition(type, verdict, refused?.observedGeneration)),
    condition("Activated", activatedVerdict(input)),
    condition("Failed", failedVerdict(input))
  ]
}

const present = <K extends string, A>(key: K, value: A | null | undefined): { readonly [P in K]?: A } => {
  const out: { [P in K]?: A } = {}
  if (value !== null && value !== undefined) out[key] = value
  return out
}

/** The settings of a revision and who chose each; null if that was not recorded. */
const settingsShown = ({ estimate: { chosen_by: chosen }, settings }: NonNullable<Run["revision"]>) => {
  if (chosen === undefined) return null
  const { engine_flags: flags = {}, ...plain } = settings
  const values: Readonly<Record<string, unknown>> = {
    ...plain,
    ...Object.fromEntries(Object.entries(flags).map(([flag, value]) => [`engine_flags.${flag}`, value])),
    [samplingChoice]: "generation_config.json"
  }
  return Object.entries(chosen)
    .filter(([name]) => Object.hasOwn(values, name))
    .map(([name, chosenBy]) => ({ name, value: JSON.stringify(values[name]), chosenBy }))
}

const benchmarkOf = (benchmark: Benchmark) => ({
  suite: `${benchmark.suite} ${benchmark.suite_version}`,
  inputTokens: benchmark.input_tokens,
  outputTokens: benchmark.output_tokens,
  steps: benchmark.steps.map((step) => ({
    concurrency: step.concurrency,
    requests: step.requests,
    errors: step.errors,
    seconds: step.seconds,
    outputTokensPerSecond: step.output_tokens_per_s,
    ...present("ttftMsP50", step.ttft_ms_p50),
    ...present("tpotMsP50", step.tpot_ms_p50),
    ...present("requestsPerSecond", step.figures?.requests_per_s),
    ...present("goodputPerSecond", step.figures?.goodput_per_s),
    ...present("steady", step.figures?.steady)
  })),
  ...present("scale", benchmark.scale),
  ...present("missing", benchmark.missing),
  ...present("slow", benchmark.slow?.ratio)
})

const waitsFor = {
  older_run: "OlderRun",
  organization_limit: "OrganizationLimit",
  host_class: "HostClass",
  capacity: "Capacity"
} as const satisfies Record<WaitReason, string>

const queueStatus = ({ place, waits_for }: QueueProgress, message: string) => ({ waitsFor: waitsFor[waits_for], ...present("place", place), message })

const downloadStatus = ({ bytes, bytes_per_second, seconds_left, stalled, total_bytes }: DownloadProgress) => ({
  bytes,
  totalBytes: total_bytes,
  bytesPerSecond: bytes_per_second,
  ...present("secondsLeft", seconds_left),
  ...(stalled ? { stalled: true } : {})
})

const revisionStatus = (revision: NonNullable<Run["revision"]>) => ({
  revision: revision.facts.commit.slice(0, 12),
  commit: revision.facts.commit,
  weightsManifest: weightsManifest(revision),
  hostClass: revision.settings.host_class,
  gpus: revision.estimate.gpu_count,
  runtime: revision.settings.runtime,
  engineVersion: revision.engineVersion,
  ...present("engineImage", revision.engineImage),
  ...present("engineDigest", revision.engineDigest),
  maxContext: revision.settings.max_context,
  ...present("settings", settingsShown(revision))
})

const measuredStatus = (measured: Measured) => ({
  ...present("weightsBytes", measured.weights_bytes),
  ...present("kvCacheBytes", measured.kv_cache_bytes),
  ...present("kvCacheTokens", measured.kv_cache_tokens),
  ...present("overheadBytes", measured.overhead_bytes),
  ...present("maxConcurrency", measured.max_concurrency),
  ...present("loadSeconds", measured.load_seconds)
})

/** The results of the trial of a revision. */
const trialStatus = (revision: Run["revision"]) => ({
  ...present("checks", revision?.checks?.checks),
  ...present("measured", revision === null || revision.measured === null ? null : measuredStatus(revision.measured)),
  ...present("benchmark", revision === null || revision.benchmark === null ? null : benchmarkOf(revision.benchmark))
})

/** The callable name while the model serves, with this or an earlier revision. */
const endpointOf = (input: StatusInput): string | null => {
  const { activeRevisionId, applied, model, modelDeleted, modelDisabled } = input.run
  const isModelServed = applied !== null && activeRevisionId !== null && !modelDisabled && !modelDeleted
  return isModelServed || isServed(input) ? model : null
}

/**
 * The status of a run's custom resource. Everything follows from Postgres and the pod, except the transition times of
 * the conditions.
 */
export const statusOf = (input: StatusInput): ModelDeploymentStatus => {
  const { cause, download, pod, queue, run } = input
  const acceptance = accepted(input)
  // The failure of the change is shown, because the person who changed the specification waits for it.
  const message =
    acceptance?.status === "False"
      ? `The current specification was refused: ${acceptance.message} The previously accepted one continues: ${input.message}`
      : input.message
  return {
    deploymentId: run.id,
    model: run.model,
    phase: run.phase,
    message,
    ...present("cause", cause),
    ...present("queue", queue === null ? null : queueStatus(queue, input.message)),
    ...present("download", download === null ? null : downloadStatus(download)),
    ...(run.revision === null ? {} : revisionStatus(run.revision)),
    ...present("endpoint", endpointOf(input)),
    ...present("serving", servingStatus(run)),
    ...scaleStatus(run, input.engines ?? noEngines),
    latest: latestStatus(run),
    ...present("pod", pod?.name),
    phases: run.history.map(({ at, phase, reason }) => ({ phase, at: iso(at), ...present("reason", reason) })),
    ...trialStatus(run.revision),
    ...present("failure", run.failure === null ? null : { code: run.failure.code, message: run.failure.text }),
    conditions: conditions(input),
    observedGeneration: Math.max(generationOf(input), acceptance?.observedGeneration ?? 0)
  }
}
