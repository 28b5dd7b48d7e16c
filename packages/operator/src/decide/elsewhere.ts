import { type FailureCode, failureTraits, maxRequeues } from "@seatrial/domain"
import type { Observation } from "../observation/Observation.ts"
import { Action, act, by, type Decision, fail } from "./Decision.ts"

/** The code that is recorded for a node with a failed GPU. */
const gpuFault = "gpu_fault"

/**
 * Earlier faults of that kind, from before the current phase. Each belongs to another attempt, usually on another node.
 */
const earlier = ({ run }: Observation, code: string) =>
  run.nodeFaults.filter((fault) => fault.code === code && fault.at >= run.createdAt && fault.at < run.phaseSince)

const backToQueue = ({ run }: Observation, code: string, reason: string): Decision => {
  const published = run.endpoints.length > 0 && run.engineRun === run.id ? [Action.Publish({ endpoints: [] })] : []
  // The pod is deleted in the queue. The fault is recorded before the phase. After a crash between the two writes it is
  // as recent as the phase, and is recorded again.
  const actions = [...published, Action.NoteNodeFault({ code }), Action.Enter({ to: "queued", reason, failure: null, replaces: false })]
  return by("anotherNode", act(reason, ...actions))
}

/**
 * Moves the run to another node because a GPU failed, or fails the run if that happened too often. The model is not at
 * fault.
 */
export const leaveFailedCard = (observation: Observation): Decision => {
  if (observation.run.requeues < maxRequeues) return backToQueue(observation, gpuFault, "A GPU of the engine failed. Another node is tried.")
  const failed = earlier(observation, gpuFault).length + 1
  const fault = failed === 1 ? "A GPU failed while this model ran on it" : `GPUs failed on ${failed} attempts while this model ran on them`
  return by("failedGpu", fail("node_fault", `${fault}. The model is not at fault; try again later, or choose another host class.`))
}

/** Tries another node once, if there is one and no fault of this kind was recorded before. Otherwise null. */
export const onceElsewhere = (observation: Observation, code: string, reason: string): Decision | null =>
  earlier(observation, code).length > 0 || !observation.elsewhere || observation.run.requeues >= maxRequeues ? null : backToQueue(observation, code, reason)

/**
 * Ends the run for a failure of its trial, once the cause is clear. If a node can cause the failure, another node is
 * tried first. After that, engine and model are at fault.
 */
export const judge = (observation: Observation, code: FailureCode, text: string): Decision => {
  const { mayBeGpu, mayBeNode } = failureTraits[code]
  if (observation.pod?.gpuFault === true && mayBeGpu) return leaveFailedCard(observation)
  if (!mayBeNode) return fail(code, text)
  const before = earlier(observation, code).length
  const retry = onceElsewhere(observation, code, `${code} on one node. Another node is tried, to find out whether the node or the model is at fault.`)
  return retry ?? fail(code, before === 0 ? text : `${text} Reproduced on two attempts${observation.elsewhere ? ", on two nodes" : ""}.`)
}
