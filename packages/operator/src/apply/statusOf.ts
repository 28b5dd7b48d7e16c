import { type Benchmark, isFinished } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { PodSeen } from "../decide/Observation.ts"
import type { Condition, ModelDeploymentStatus } from "../resources/ModelDeployment.ts"

const iso = (millis: number): string => new Date(millis).toISOString()

interface StatusInput {
  readonly run: Run
  readonly pod: PodSeen | null
  readonly message: string
  readonly generation: number
  /** What the status says so far: a condition keeps its time while it does not change. */
  readonly before: ModelDeploymentStatus | undefined
  /** Unix milliseconds. */
  readonly now: number
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** Whether its own engine carries the model's traffic: one that it only reused is shown by the run that has it. */
const isServed = (run: Run): boolean =>
  run.phase === "activated" && run.revision?.status === "active" && !run.modelDisabled && !run.modelDeleted && run.engineRun === run.id

const conditions = ({ before, generation, message, now, pod, run }: StatusInput): ReadonlyArray<Condition> => {
  const served = isServed(run)
  const ready = pod?.ready === true && !pod.deleting && pod.lost === null
  const condition = (type: string, holds: boolean, reason: string, text: string): Condition => {
    const status = holds ? "True" : "False"
    const earlier = before?.conditions?.find((candidate) => candidate.type === type)
    const lastTransitionTime = earlier?.status === status ? earlier.lastTransitionTime : iso(now)
    return { type, status, reason, message: text, lastTransitionTime, observedGeneration: generation }
  }
  const phase = capitalized(run.phase)
  return [
    condition(
      "Ready",
      served && ready,
      served ? (ready ? "Serving" : "EngineNotReady") : run.phase === "activated" && run.modelDisabled ? "Disabled" : phase,
      message
    ),
    condition("Activated", run.phase === "activated", phase, message),
    condition("Failed", run.phase === "failed", run.failure?.code ?? (isFinished(run.phase) ? phase : "InProgress"), message)
  ]
}

const present = <K extends string, A>(key: K, value: A | null | undefined): { readonly [P in K]?: A } => {
  const out: { [P in K]?: A } = {}
  if (value !== null && value !== undefined) out[key] = value
  return out
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
    ...present("tpotMsP50", step.tpot_ms_p50)
  }))
})

/** The status that mirrors a run: everything from Postgres and the pod, nothing that only the status would know but the times of its conditions. */
export const statusOf = (input: StatusInput): ModelDeploymentStatus => {
  const { message, pod, run } = input
  const { revision } = run
  const { benchmark, measured } = revision ?? { benchmark: null, measured: null }
  const served = isServed(run)
  return {
    phase: run.phase,
    message,
    ...(revision === null
      ? {}
      : {
          revision: revision.facts.commit.slice(0, 12),
          commit: revision.facts.commit,
          hostClass: revision.settings.host_class,
          runtime: revision.settings.runtime,
          engineVersion: revision.engineVersion,
          maxContext: revision.settings.max_context
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
    observedGeneration: input.generation
  }
}
