import { type FailureCode, maxRequeues } from "@seatrial/domain"
import { Action, act, type Decision, fail } from "./Decision.ts"
import type { Observation } from "./Observation.ts"

/** A card that failed, as it is noted of a node. */
const gpuFault = "gpu_fault"

/** What one node may show that another does not: the second one decides. All else is the model's or its engine's on any node. */
const oncePerNode: ReadonlySet<FailureCode> = new Set(["output_garbage", "nondeterministic_output", "engine_crashed", "trial_unavailable"])

/** What a card that fails may show as well. */
const mayBeCard: ReadonlySet<FailureCode> = new Set([...oncePerNode, "checks_failed", "engine_hung", "benchmark_floor"])

/** What was found of that kind before the phase that the run is in: on another try of its own, as a rule on another node. */
const earlier = ({ run }: Observation, code: string) =>
  run.nodeFaults.filter((fault) => fault.code === code && fault.at >= run.createdAt && fault.at < run.phaseSince)

const backToQueue = ({ run }: Observation, code: string, reason: string): Decision => {
  const published = run.endpoints.length > 0 && run.engineRun === run.id ? [Action.Publish({ endpoints: [] })] : []
  // Its pod is removed from the queue. What was found is written before the phase: after a crash between the two it is no older than the phase, and noted again.
  return act(reason, ...published, Action.NoteNodeFault({ code }), Action.Enter({ to: "queued", reason, failure: null, replaces: false }))
}

/** The run goes to another node for a card that failed; the end where that happened too often. No fault of the model. */
export const leaveFailedCard = (seen: Observation): Decision => {
  if (seen.run.requeues < maxRequeues) return backToQueue(seen, gpuFault, "A GPU failed under the engine. Tries another node.")
  const failed = earlier(seen, gpuFault).length + 1
  const nodes = failed === 1 ? "A node" : `${failed} nodes`
  return fail("node_fault", `${nodes} failed under this model (GPU). No fault of the model was found; try again later, or another host class.`)
}

/** Once on another node, where there is one and nothing of the kind was found before; null where that is no use. */
export const onceElsewhere = (seen: Observation, code: string, reason: string): Decision | null =>
  earlier(seen, code).length > 0 || !seen.elsewhere || seen.run.requeues >= maxRequeues ? null : backToQueue(seen, code, reason)

/** Ends the run for what its trial found, once it is clear whose fault it was: first the node is suspected, where it can be one's fault, then engine and model. */
export const judge = (seen: Observation, code: FailureCode, text: string): Decision => {
  if (seen.pod?.gpuFault === true && mayBeCard.has(code)) return leaveFailedCard(seen)
  if (!oncePerNode.has(code)) return fail(code, text)
  const before = earlier(seen, code).length
  const there = onceElsewhere(seen, code, `Found on one node: ${code}. Tries another node, which shows whose fault it is.`)
  return there ?? fail(code, before === 0 ? text : `${text} So it was on two tries${seen.elsewhere ? ", on two nodes" : ""}.`)
}
