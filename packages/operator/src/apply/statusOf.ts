import { type Benchmark, type DownloadProgress, isFinished, type QueueProgress, type WaitReason } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { isServed } from "../decide/idle.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import type { Condition } from "../resources/Condition.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { weightsManifest } from "../resources/weightFiles.ts"

const iso = (millis: number): string => new Date(millis).toISOString()

interface StatusInput {
  readonly run: Run
  readonly pod: ObservedPod | null
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
  /** Whether its host class does not exist. */
  readonly classGone?: boolean
  /** Unix milliseconds. */
  readonly now: number
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** A Kubernetes reason: `image_unavailable` becomes `ImageUnavailable`. */
const camelCase = (code: string) => code.split("_").map(capitalized).join("")

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
  const { before, generation, now, run } = input
  const earlier = before?.conditions?.find(({ type }) => type === "Accepted")
  if (generationOf(input) !== generation) return earlier
  return {
    type: "Accepted",
    status: "True",
    reason: "Accepted",
    message: `Accepted as deployment ${run.id}.`,
    lastTransitionTime: earlier?.status === "True" ? earlier.lastTransitionTime : iso(now),
    observedGeneration: generation
  }
}

const conditions = (input: StatusInput): ReadonlyArray<Condition> => {
  const { before, message, now, pod, run } = input
  const generation = generationOf(input)
  const first = accepted(input)
  const served = isServed(input)
  // An engine that is about to be deleted accepts no requests.
  const unfunded = input.unfunded ?? null
  const away = unfunded !== null ? unfunded : input.idle === true ? "Idle" : run.replacedBy === null ? null : "Replaced"
  const withheld = input.withheld ?? null
  const ready = pod?.ready === true && !pod.deleting && pod.lost === null && away === null && withheld === null
  const condition = (type: string, holds: boolean, reason: string, text: string): Condition => {
    const status = holds ? "True" : "False"
    const earlier = before?.conditions?.find((candidate) => candidate.type === type)
    const lastTransitionTime = earlier?.status === status ? earlier.lastTransitionTime : iso(now)
    return { type, status, reason, message: text, lastTransitionTime, observedGeneration: generation }
  }
  const phase = capitalized(run.phase)
  return [
    ...(first === undefined ? [] : [first]),
    condition(
      "Ready",
      served && ready,
      served
        ? ready
          ? "Serving"
          : (away ?? (input.classGone === true && pod === null ? "HostClassMissing" : (withheld ?? "EngineNotReady")))
        : run.phase === "activated" && run.modelDisabled
          ? "Disabled"
          : (unfunded ?? phase),
      message
    ),
    condition("Activated", run.phase === "activated", phase, run.phase === "activated" ? activatedAs(run) : message),
    condition(
      "Failed",
      run.phase === "failed",
      run.phase === "failed" ? camelCase(run.failure?.code ?? phase) : isFinished(run.phase) ? phase : "InProgress",
      run.phase === "failed" ? message : "The run has not failed."
    )
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
    sampling_defaults: "generation_config.json"
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

/**
 * The status of a run's custom resource. Everything follows from Postgres and the pod, except the transition times of
 * the conditions.
 */
export const statusOf = (input: StatusInput): ModelDeploymentStatus => {
  const { cause, download, pod, queue, run } = input
  const { revision } = run
  const refused = accepted(input)
  // The failure of the change is shown, because the person who changed the specification waits for it.
  const message =
    refused?.status === "False"
      ? `The current specification was refused: ${refused.message} The previously accepted one continues: ${input.message}`
      : input.message
  const { benchmark, measured } = revision ?? { benchmark: null, measured: null }
  const modelServed = run.applied !== null && run.activeRevisionId !== null && !run.modelDisabled && !run.modelDeleted
  const served = isServed(input) || modelServed
  return {
    deploymentId: run.id,
    model: run.model,
    phase: run.phase,
    message,
    ...present("cause", cause),
    ...present("queue", queue === null ? null : queueStatus(queue, input.message)),
    ...present("download", download === null ? null : downloadStatus(download)),
    ...(revision === null
      ? {}
      : {
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
        }),
    ...present("endpoint", served ? run.model : null),
    ...present("pod", pod?.name),
    phases: run.history.map(({ at, phase, reason }) => ({ phase, at: iso(at), ...present("reason", reason) })),
    ...present("checks", revision?.checks?.checks),
    ...(measured === null
      ? {}
      : {
          measured: {
            ...present("weightsBytes", measured.weights_bytes),
            ...present("kvCacheBytes", measured.kv_cache_bytes),
            ...present("kvCacheTokens", measured.kv_cache_tokens),
            ...present("overheadBytes", measured.overhead_bytes),
            ...present("maxConcurrency", measured.max_concurrency),
            ...present("loadSeconds", measured.load_seconds)
          }
        }),
    ...present("benchmark", benchmark === null ? null : benchmarkOf(benchmark)),
    ...present("failure", run.failure === null ? null : { code: run.failure.code, message: run.failure.text }),
    conditions: conditions(input),
    observedGeneration: Math.max(generationOf(input), refused?.observedGeneration ?? 0)
  }
}
