import { flagNames } from "@seatrial/domain"
import { bootRestarts } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { goesOn, type WorkKind } from "../observation/work.ts"
import { classMissing } from "./classMissing.ts"
import { copying } from "./copying.ts"
import { Action, act, by, type Decision, fail, wait } from "./Decision.ts"
import { judge, leaveFailedCard } from "./elsewhere.ts"
import { replaceChanged } from "./engineImage.ts"
import { endedWithItsNode, moreMemory, sidecarUnready } from "./engineStart.ts"
import { merging, preparedAt } from "./merging.ts"
import { replaceOutdated } from "./outdated.ts"
import { type EngineObservation, firstOf, hasPod, type Rule } from "./Rule.ts"

/** "a smaller `flag`", with the engine's own flag for the number of its slots. */
export const fewerSlots = ({ run: { revision } }: Observation): string =>
  `a smaller ${(revision === null ? null : flagNames[revision.settings.runtime].slots) ?? "number of concurrent requests"}`

const evicted: Rule = ({ pod }) => (pod.lost === null ? null : act(`The engine was evicted: ${pod.lost}.`, Action.RemovePod({ uid: pod.uid, force: true })))

const ending: Rule = ({ pod }) => (pod.deleting ? wait("The deployment waits for an earlier engine to end.") : null)

const otherImage: Rule = (observation) => {
  const changed = replaceChanged(observation)
  return changed === null ? null : act(changed.message, ...changed.actions)
}

/** Whether the container ended repeatedly since the phase began, and its node is not the cause. */
const hasCrashed = (pod: ObservedPod, phaseSince: number): boolean =>
  pod.restarts >= bootRestarts && pod.startedAt !== null && pod.startedAt > phaseSince && !endedWithItsNode(pod)

/** An engine that crashed repeatedly during the trial. */
const crashed: Rule = (observation) => {
  const { engine, pod, run } = observation
  if (!hasCrashed(pod, run.phaseSince)) return null
  if (pod.lastExit?.reason === "OOMKilled") return fail("out_of_memory", `The engine exceeded its host memory during the trial and was killed. ${moreMemory}`)
  const startFailure = engine?.bootFailure(observation.bootLog ?? "") ?? null
  if (startFailure !== null && startFailure.code !== "engine_start_failed") return fail(startFailure.code, startFailure.text)
  if (pod.gpuFault) return leaveFailedCard(observation)
  return judge(
    observation,
    "engine_crashed",
    `${run.revision?.engineVersion ?? "The engine"} ended ${pod.restarts} times and was restarted, the last time in ${run.phase}. Choose another runtime, or ${fewerSlots(observation)}.`
  )
}

const outdated: Rule = ({ outdated, pod }) => (outdated ? replaceOutdated(pod) : null)

/** The pod lost its place, and Kueue or an autoscaler may give it another: it has not failed. */
const unplaced: Rule = ({ pod, podClass }) => {
  if (pod.scheduled) return null
  if (pod.gated) return wait("The deployment waits in Kueue's queue for other GPUs.")
  return podClass?.autoscaling === true ? wait("No node can take the engine yet. The cluster's autoscaler may be adding one.") : null
}

/** The failure of an engine that was not ready again in time. */
const unresponsive = ({ pod, run }: EngineObservation, seconds: number): Decision => {
  if (pod.unreadySidecar !== null) return fail("container_blocked", sidecarUnready(seconds))
  const isAlive = pod.started && pod.lastExit === null && pod.startedAt !== null && pod.startedAt < run.phaseSince
  return isAlive
    ? fail("engine_hung", `The engine hung during the trial. Its process runs, but the engine has not responded for ${seconds} seconds. Try another runtime.`)
    : fail(
        "engine_lost",
        `The engine stopped responding during the trial and was not ready again within ${seconds} seconds. Try again, or choose another host class.`
      )
}

/** Waits until the engine is ready again, at the latest until its deadline. */
const awaitReady = (observation: EngineObservation, now: number, kind: WorkKind): Decision => {
  const { pod, podClass, run } = observation
  const work = goesOn(observation, kind)
  // The work's own requests show whether the engine still computes. A busy engine may answer no probe, and the work has
  // its own time limit.
  if (work !== null) return { ...wait("The deployment waits for the engine, which is busy with the trial and answers probes late."), work }
  const seconds = podClass?.bootDeadlineSeconds ?? 600
  const deadline = countedFrom(observation, run.phaseSince, pod.createdAt, pod.scheduledAt, preparedAt(pod), pod.readyChangedAt) + seconds * 1_000
  return now >= deadline ? unresponsive(observation, seconds) : wait("The deployment waits for the engine to be ready again.", deadline)
}

/**
 * The decision if the engine, which was ready when the trial began, is not ready now. Null if it is ready. `kind`: the
 * work that needs it.
 */
export const engineFirst = (observation: Observation, now: number, kind: WorkKind): Decision | null => {
  if (!hasPod(observation))
    return observation.podClass === null ? classMissing(observation) : by("createPod", act("Seatrial creates the engine's pod again.", Action.EnsurePod({})))
  const stopped = firstOf({ evicted, ending, otherImage, crashed }, observation, now)
  if (stopped !== null) return stopped
  if (observation.pod.ready && observation.pod.url !== null) return null
  return firstOf({ outdated, unplaced, copying, merging }, observation, now) ?? by("awaitReady", awaitReady(observation, now, kind))
}
