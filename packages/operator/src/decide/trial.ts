import { benchmarkFault, kvCapacityFault, type Measured } from "@seatrial/domain"
import { backoff, bootRestarts, gatewayDeadline, trialAttempts } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import { endedOf, goesOn, type WorkEnded, type WorkKind } from "../observation/work.ts"
import { bootEvents, compareFirst, describeDifference, replaceRestarted } from "./bootCheck.ts"
import { classMissing } from "./classMissing.ts"
import { copying } from "./copying.ts"
import { Action, act, type Decision, enter, fail, wait } from "./Decision.ts"
import { judge, leaveFailedCard, onceElsewhere } from "./elsewhere.ts"
import { noteImage, replaceChanged } from "./engineImage.ts"
import { endedWithItsNode, moreMemory } from "./engineStart.ts"
import { failedChecks } from "./failedChecks.ts"
import { merging, preparedAt } from "./merging.ts"
import { replaceOutdated } from "./outdated.ts"

const names = {
  boot: "comparison",
  fidelity: "questions to the merged model",
  checking: "checks",
  measuring: "measurements",
  benchmarking: "benchmark",
  screening: "screening"
} as const satisfies Record<WorkKind, string>

/** Decides about an engine that crashed repeatedly during the trial. Null if it has not. */
const crashed = (observation: Observation): Decision | null => {
  const { engine, pod, run } = observation
  if (pod === null || pod.restarts < bootRestarts || pod.startedAt === null || pod.startedAt <= run.phaseSince || endedWithItsNode(pod)) return null
  if (pod.lastExit?.reason === "OOMKilled") return fail("out_of_memory", `The engine exceeded its host memory during the trial and was killed. ${moreMemory}`)
  const startFailure = engine?.bootFailure(observation.bootLog ?? "") ?? null
  if (startFailure !== null && startFailure.code !== "engine_start_failed") return fail(startFailure.code, startFailure.text)
  if (pod.gpuFault) return leaveFailedCard(observation)
  return judge(
    observation,
    "engine_crashed",
    `${run.revision?.engineVersion ?? "The engine"} ended ${pod.restarts} times and was restarted, the last time in ${run.phase}. Choose another runtime, or a smaller max_num_seqs.`
  )
}

/**
 * The decision if the engine, which was ready when the trial began, is not ready now. Null if it is ready. `kind`: the
 * work that needs it.
 */
const engineFirst = (observation: Observation, now: number, kind: WorkKind): Decision | null => {
  const { pod, podClass, run } = observation
  if (pod === null) {
    return podClass === null ? classMissing(observation) : act("Requests the engine again.", Action.EnsurePod())
  }
  if (pod.lost !== null) return act(`The engine was evicted: ${pod.lost}.`, Action.RemovePod({ uid: pod.uid, force: true }))
  if (pod.deleting) return wait("Waits for an earlier engine to end.")
  const changed = replaceChanged(observation)
  if (changed !== null) return act(changed.message, ...changed.actions)
  const stopped = crashed(observation)
  if (stopped !== null) return stopped
  if (pod.ready && pod.url !== null) return null
  if (observation.outdated) return replaceOutdated(pod)
  // The pod lost its place and Kueue or an autoscaler may give it another: it has not failed.
  if (!pod.scheduled && pod.gated) return wait("Waits in Kueue's queue for other GPUs.")
  if (!pod.scheduled && podClass?.autoscaling === true) return wait("No node can take the engine yet, but one may be on its way.")
  const copied = copying(observation, now)
  if (copied !== null) return copied
  const merged = merging(observation, now)
  if (merged !== null) return merged
  const seconds = podClass?.bootDeadlineSeconds ?? 600
  const deadline = countedFrom(observation, run.phaseSince, pod.createdAt, pod.scheduledAt, preparedAt(pod), pod.readyChangedAt) + seconds * 1_000
  const work = goesOn(observation, kind)
  // The work's own requests show whether the engine still computes. A busy engine may answer no probe, and the work has
  // its own time limit.
  if (work !== null) return { ...wait("Waits for the engine, which is busy with its trial and answers its probes late."), work }
  if (now >= deadline) {
    const alive = pod.started && pod.lastExit === null && pod.startedAt !== null && pod.startedAt < run.phaseSince
    if (alive)
      return fail("engine_hung", `The engine hung during the trial: its process runs, but it has not responded for ${seconds} seconds. Try another runtime.`)
    return fail(
      "engine_lost",
      `The engine stopped responding during the trial and was not ready again within ${seconds} seconds. Try again, or choose another host class.`
    )
  }
  return wait("Waits for the engine to be ready again.", deadline)
}

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
        `${message} This happened on each of ${attempts} attempts. Choose another revision, with a chat template that ends and a smaller tokenizer, and report the problem to the model's authors.`
      )
    : fail("trial_unavailable", `The ${names[kind]} failed ${attempts} times. The model is not at fault; deploy again. ${message}`)

/** Runs one work of the trial while the engine is ready. */
const run = (kind: WorkKind, observation: Observation, now: number, doing: string): Decision => {
  const ended = endedOf(observation, kind)
  if (ended?.failure) return fail(ended.failure.code, ended.failure.text)
  if (ended !== null && ended.attempts >= trialAttempts) return exhausted(kind, ended)
  const first = engineFirst(observation, now, kind)
  if (first !== null) return first
  // Without the host class the expected values are unknown. Running work has them already.
  if (observation.podClass === null) return { ...classMissing(observation), work: goesOn(observation, kind) }
  // The image is recorded before any result: the result is about this image.
  const noted = noteImage(observation)
  if (noted.length > 0) return act("Records the image on trial.", ...noted)
  const next = ended === null ? now : ended.at + backoff(ended.attempts)
  if (observation.work.running === null && now < next) return wait(`${ended?.message} It is retried.`, next)
  return { ...wait(doing), work: kind }
}

/**
 * The step before the checks of an adapter: the merged model answers in the run's place, and then leaves it to the
 * adapter. Null if the adapter can be checked.
 */
const mergedFirst = (observation: Observation, now: number): Decision | null => {
  const { merged, pod } = observation
  const isPresent = pod !== null && pod.lost === null && !pod.deleting
  if (isPresent && merged === "wanted" && pod.merge === null) {
    const message = "The merged model's answers were lost, as after a restart of the operator. They are collected again before the adapter is checked."
    return act(message, Action.RemovePod({ uid: pod.uid, force: false }))
  }
  if (merged === "wanted") return run("fidelity", observation, now, "Collects the merged model's answers, to compare the adapter with them.")
  if (isPresent && pod.merge !== null) return act("The merged model has answered. The adapter replaces it.", Action.RemovePod({ uid: pod.uid, force: false }))
  return null
}

export const checking = (observation: Observation, now: number): Decision => {
  const report = observation.run.revision?.checks ?? null
  if (report === null) return mergedFirst(observation, now) ?? run("checking", observation, now, "Checks the engine's answers.")
  if (!report.passed) {
    const { code, text } = failedChecks(report)
    return judge(observation, code, text)
  }
  const { drifted = 0, fingerprints, withdrawn = [] } = report
  const passed = report.checks.filter(({ name, passed }) => passed && name !== "suite").length
  const events = [
    ...(drifted === 0
      ? []
      : [
          Action.Tell({
            reason: "FingerprintDrift",
            about: observation.run.id,
            message: `${drifted} of ${fingerprints.length} greedy answers differ from an earlier trial of the same commit, GPU type, engine and settings; the likelihood of texts does not.`
          })
        ]),
    ...(withdrawn.length === 0
      ? []
      : [
          Action.Tell({
            reason: "CapabilitiesWithdrawn",
            about: observation.run.id,
            message: `These capabilities failed their checks and are not served: ${withdrawn.join(", ")}.`
          })
        ])
  ]
  return enter("measuring", `${passed} checks passed${withdrawn.length === 0 ? "" : `, ${withdrawn.length} capabilities withdrawn`}.`, ...events)
}

/**
 * Warns the cluster's operator if the engine's KV cache does not match the estimate for the architecture. The estimates
 * are wrong, and more measuring cannot correct them.
 */
const layoutEvents = ({ run: { id, revision } }: Observation, { kv_layout: layout }: Measured): ReadonlyArray<Action> => {
  if (layout === undefined || !layout.differs) return []
  const [events, exact] = [layout.told.toFixed(1), layout.exact.toFixed(1)]
  const message = `kv_layout_differs: the engine's KV cache takes ${events} bytes per token, but the estimate is ${exact} (${revision?.facts.config.architecture}).`
  return [Action.Tell({ reason: "KvLayoutDiffers", about: id, message })]
}

export const measuring = (observation: Observation, now: number): Decision => {
  const revision = observation.run.revision
  const measured = revision?.measured ?? null
  if (revision === null || measured === null) return run("measuring", observation, now, "Reads the engine's figures.")
  const fault = kvCapacityFault(measured, revision.settings.max_context)
  if (fault !== null) return fail("kv_capacity", fault)
  const tokens = measured.kv_cache_tokens
  return enter(
    "benchmarking",
    tokens === null ? "The engine's figures were read." : `The KV cache holds ${tokens} tokens.`,
    ...layoutEvents(observation, measured)
  )
}

export const benchmarking = (observation: Observation, now: number): Decision => {
  const benchmark = observation.run.revision?.benchmark ?? null
  if (benchmark === null) return run("benchmarking", observation, now, "Measures speed under load.")
  const fault = benchmarkFault(benchmark)
  if (fault !== null) return judge(observation, "benchmark_floor", fault)
  const requests = benchmark.steps.reduce((sum, step) => sum + step.requests + step.errors, 0)
  if (benchmark.slow !== undefined && observation.podClass?.hostClass.simulated === false) {
    const share = `${Math.round(benchmark.slow.ratio * 100)}% of the median of ${benchmark.slow.earlier} earlier benchmarks of the same model and settings`
    const again = onceElsewhere(observation, "node_slow", `The node is slow: ${share}. Another node is tried.`)
    if (again !== null) return again
  }
  if (!observation.run.serve) return act("Verified. It is not served (serve: false).", Action.Activate())
  const answered = `${requests} requests answered under load.`
  return enter(
    "activating",
    benchmark.missing === undefined
      ? answered
      : `${answered} Their figures are not valid, but the model is not at fault: benchmark_missing (${benchmark.missing}).`
  )
}

/**
 * Publishes the engine to the gateways, and activates it once a gateway reached it. The serving revision is not touched
 * before.
 */
export const activating = (observation: Observation, now: number): Decision => {
  const { pod, run } = observation
  // Only a run that reuses the serving revision gets here with an active revision. Traffic and engine stay as they are.
  if (run.revision?.status === "active") return act("Its revision already serves.", Action.Activate())
  const first = engineFirst(observation, now, "boot")
  if (first !== null || pod === null || pod.url === null) return first ?? wait("Waits for the engine's address.")
  // The pod's status and the gateways' observations may be from before the node became unresponsive, so the engine
  // takes no traffic from the serving revision. Either the node returns or the pod is lost.
  if (pod.nodeDownSince !== null) return wait("Waits for the engine's node, which does not respond.")
  const published = run.endpoints.find((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)
  const alone = published !== undefined && run.endpoints.length === 1
  // A published engine may have restarted since.
  const boot = observation.boot?.verdict?.outcome === "differs" ? describeDifference(observation) : null
  if (boot !== null) {
    const replacement = replaceRestarted(observation)
    const withdrawn = replacement === null || run.endpoints.length === 0 ? [] : [Action.Publish({ endpoints: [] })]
    return (
      onceElsewhere(observation, "fingerprints_differ", `${boot} Another node is tried.`) ??
      (replacement === null ? fail("nondeterministic_output", boot) : { ...replacement, actions: [...withdrawn, ...replacement.actions] })
    )
  }
  const compared = compareFirst(observation, now)
  if (compared !== null) return compared
  if (alone && published.reachable) return act("A gateway reached the engine.", Action.Activate())
  // The deadline of the gateways starts when the engine can be published, which is after its comparison.
  const comparedAt = [observation.boot?.verdict?.at ?? null, endedOf(observation, "boot")?.at ?? null]
  const deadline = countedFrom(observation, run.phaseSince, pod.readyChangedAt, ...comparedAt) + gatewayDeadline
  if (now >= deadline)
    return fail(
      "gateway_unreachable",
      "No gateway reached the new revision within 2 minutes. The previous revision continues to serve. Deploy again; if the problem persists, contact the cluster's operator."
    )
  if (!alone) {
    return {
      ...act("Publishes the engine to the gateways.", ...bootEvents(observation), Action.Publish({ endpoints: [{ url: pod.url, pod: pod.name }] })),
      requeueAt: deadline
    }
  }
  return wait("Waits until a gateway has reached the engine.", deadline)
}
