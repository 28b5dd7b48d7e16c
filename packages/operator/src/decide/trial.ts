import { benchmarkFault, type CheckReport, kvCapacityFault, type Measured } from "@seatrial/domain"
import { backoff, trialAttempts } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import { endedOf, goesOn, type WorkEnded, type WorkKind } from "../observation/work.ts"
import { classMissing } from "./classMissing.ts"
import { Action, act, by, type Decision, enter, fail, wait } from "./Decision.ts"
import { judge, onceElsewhere } from "./elsewhere.ts"
import { noteImage } from "./engineImage.ts"
import { engineFirst, fewerSlots } from "./engineInTrial.ts"
import { failedChecks } from "./failedChecks.ts"
import { awaitReference, preparedFirst, unawaited } from "./reference.ts"

const names = {
  boot: "comparison",
  fidelity: "questions to the merged model",
  checking: "checks",
  comparing: "comparison with the reference",
  measuring: "measurements",
  benchmarking: "benchmark",
  screening: "screening",
  preparation: "preparation of the reference"
} as const satisfies Record<WorkKind, string>

/**
 * The failure after the last attempt of a work. By default the trial was unavailable and the model is not at fault. The
 * exception is a tokenizer or template that exceeded the memory of its process at every attempt: that limit belongs to
 * the process, so a busy node does not cause it. A timeout or a process that something else ended is no evidence
 * against the repository.
 */
const exhausted = (kind: WorkKind, { attempts, byRepository, message }: WorkEnded): Decision =>
  byRepository
    ? fail(
        "tokenizer_unreadable",
        `${message} This happened on each of ${attempts} attempts. Choose a revision that has a smaller tokenizer and a chat template without an endless loop. Report the problem to the model's authors.`
      )
    : fail("trial_unavailable", `The ${names[kind]} failed ${attempts} times. The model is not at fault; deploy again. ${message}`)

/** Runs one work of the trial while the engine is ready. */
const run = (kind: WorkKind, observation: Observation, now: number, doing: string): Decision => {
  const ended = endedOf(observation, kind)
  if (ended?.failure) return by("workFailed", fail(ended.failure.code, ended.failure.text))
  if (ended !== null && ended.attempts >= trialAttempts) return by("attemptsExhausted", exhausted(kind, ended))
  const first = engineFirst(observation, now, kind)
  if (first !== null) return first
  // Without the host class the expected values are unknown. Running work has them already.
  if (observation.podClass === null) return { ...classMissing(observation), work: goesOn(observation, kind) }
  // The image is recorded before any result: the result is about this image.
  const noted = noteImage(observation)
  if (noted.length > 0) return by("noteImage", act("Seatrial records the image that is on trial.", ...noted))
  const next = ended === null ? now : ended.at + backoff(ended.attempts)
  if (observation.work.running === null && now < next) return by("retryLater", wait(`${ended?.message} Seatrial repeats the ${names[kind]}.`, next))
  return by(kind, { ...wait(doing), work: kind })
}

/**
 * The step before the checks of an adapter: the merged model answers in the run's place, and then leaves it to the
 * adapter. Null if the adapter can be checked.
 */
const mergedFirst = (observation: Observation, now: number): Decision | null => {
  const { merged, pod } = observation
  const isPresent = pod !== null && pod.lost === null && !pod.deleting
  if (isPresent && merged === "wanted" && pod.merge === null) {
    const message =
      "The merged model's answers were lost, for example because the operator restarted. Seatrial collects them again before it checks the adapter."
    return by("mergedAnswersLost", act(message, Action.RemovePod({ uid: pod.uid, force: false })))
  }
  if (merged === "wanted") return run("fidelity", observation, now, "Seatrial collects the merged model's answers, to compare the adapter with them.")
  if (isPresent && pod.merge !== null)
    return by(
      "mergedAnswered",
      act("The merged model has answered. The engine restarts with the base and the adapter.", Action.RemovePod({ uid: pod.uid, force: false }))
    )
  return null
}

/** The checks, and then the comparison with a reference that is still computed. */
const checks = (observation: Observation, now: number): Decision => {
  const { heldSince } = observation
  if (heldSince === null) return run("checking", observation, now, "Seatrial checks the engine's answers.")
  const awaited = awaitReference(observation, heldSince, now)
  if (awaited !== null) return awaited
  const compared = run("comparing", observation, now, "Seatrial compares the engine with the reference of the commit.")
  return compared.work === "comparing" ? { ...compared, actions: [...compared.actions, ...unawaited(observation)] } : compared
}

/** Warnings about a trial that passed: answers that drifted, and capabilities that are not served. */
const reportEvents = (about: string, { drifted = 0, fingerprints, withdrawn = [] }: CheckReport): ReadonlyArray<Action> => {
  const drift = Action.RecordEvent({
    reason: "FingerprintDrift",
    about,
    message: `${drifted} of ${fingerprints.length} greedy answers differ from an earlier trial of the same commit, GPU type, engine and settings. The scores of fixed texts do not differ, so the trial continues.`
  })
  const withdrawal = Action.RecordEvent({
    reason: "CapabilitiesWithdrawn",
    about,
    message: `These capabilities failed their checks and are not served: ${withdrawn.join(", ")}.`
  })
  return [...(drifted === 0 ? [] : [drift]), ...(withdrawn.length === 0 ? [] : [withdrawal])]
}

export const checking = (observation: Observation, now: number): Decision => {
  const report = observation.run.revision?.checks ?? null
  if (report === null) return mergedFirst(observation, now) ?? preparedFirst(observation, now) ?? checks(observation, now)
  if (!report.passed) {
    const { code, text } = failedChecks(report)
    return by("checksFailed", judge(observation, code, text))
  }
  const { withdrawn = [] } = report
  const passed = report.checks.filter(({ name, passed }) => passed && name !== "suite").length
  const withdrawals = withdrawn.length === 0 ? "" : `, ${withdrawn.length} ${withdrawn.length === 1 ? "capability" : "capabilities"} withdrawn`
  return by("checksPassed", enter("measuring", `${passed} checks passed${withdrawals}.`, ...reportEvents(observation.run.id, report)))
}

/**
 * Warns the cluster administrator if the engine's KV cache does not match the estimate for the architecture. The
 * estimates are wrong, and more measuring cannot correct them.
 */
const layoutEvents = ({ run: { id, revision } }: Observation, { kv_layout: layout }: Measured): ReadonlyArray<Action> => {
  if (layout === undefined || !layout.differs) return []
  const [reported, exact] = [layout.reported.toFixed(1), layout.exact.toFixed(1)]
  const message = `kv_layout_differs: the engine's KV cache takes ${reported} bytes per token, but the estimate is ${exact} (${revision?.facts.config.architecture}).`
  return [Action.RecordEvent({ reason: "KvLayoutDiffers", about: id, message })]
}

export const measuring = (observation: Observation, now: number): Decision => {
  const revision = observation.run.revision
  const measured = revision?.measured ?? null
  if (revision === null || measured === null) return run("measuring", observation, now, "Seatrial reads the engine's figures.")
  const fault = kvCapacityFault(measured, revision.settings.max_context)
  if (fault !== null) return by("cacheTooSmall", fail("kv_capacity", fault))
  const tokens = measured.kv_cache_tokens
  const reason = tokens === null ? "The engine's figures were read." : `The KV cache holds ${tokens} tokens.`
  return by("measured", enter("benchmarking", reason, ...layoutEvents(observation, measured)))
}

const benchmarkRemedy = (observation: Observation) => `Deploy again with ${fewerSlots(observation)}, or choose another runtime or host class.`

export const benchmarking = (observation: Observation, now: number): Decision => {
  const benchmark = observation.run.revision?.benchmark ?? null
  if (benchmark === null) return run("benchmarking", observation, now, "Seatrial measures speed under load.")
  const fault = benchmarkFault(benchmark)
  if (fault !== null) return by("belowFloor", judge(observation, "benchmark_floor", `${fault} ${benchmarkRemedy(observation)}`))
  const requests = benchmark.steps.reduce((sum, step) => sum + step.requests + step.errors, 0)
  if (benchmark.slow !== undefined && observation.podClass?.hostClass.simulated === false) {
    const share = `${Math.round(benchmark.slow.ratio * 100)}% of the median of ${benchmark.slow.earlier} earlier benchmarks of the same model and settings`
    const again = onceElsewhere(observation, "node_slow", `The node is slow: ${share}. Another node is tried.`)
    if (again !== null) return by("slowNode", again)
  }
  if (!observation.run.serve) return by("notServed", act("Verified. The revision gets no traffic (serve: false).", Action.Activate()))
  const answered = `${requests} requests were answered under load.`
  const reason =
    benchmark.missing === undefined
      ? answered
      : `${answered} The benchmark has no valid figures (benchmark_missing: ${benchmark.missing}). The model is not at fault and still serves.`
  return by("benchmarked", enter("activating", reason))
}
