import { Action, act, type Decision, enter, wait } from "./Decision.ts"
import type { Observation } from "./Observation.ts"

/** Where a run whose weights are there goes: to its own turn, to the pool's queue, or straight to its GPUs; and why, in words. */
export const placement = (seen: Observation): { readonly phase: "waiting" | "queued" | "provisioning"; readonly reason: string } => {
  const { ahead, freeSlots, podClass, run } = seen
  if (run.olderRun !== null) return { phase: "waiting", reason: `Waits for the older run ${run.olderRun} of this model to end.` }
  const need = run.revision?.estimate.gpu_count ?? 0
  if (run.gpuLimit !== null && seen.organizationGpus + need > run.gpuLimit) {
    const held = seen.organizationGpus === 0 ? "holds none" : `has ${seen.organizationGpus} in use or asked for`
    return { phase: "waiting", reason: `Waits for its organization's limit of ${run.gpuLimit} GPUs: it needs ${need}, and the organization ${held}.` }
  }
  const name = run.revision?.settings.host_class ?? "of the run"
  if (podClass === null) return { phase: "queued", reason: `Waits for the host class ${name}, which does not exist now.` }
  const { gpu_count, gpu_pool } = podClass.hostClass
  const gpus = `${gpu_count} ${gpu_count === 1 ? "GPU" : "GPUs"} of ${gpu_pool}`
  if (freeSlots > ahead) return { phase: "provisioning", reason: `${gpus} ${gpu_count === 1 ? "is" : "are"} free.` }
  return { phase: "queued", reason: `Waits for ${gpus}${ahead === 0 ? ": first in the queue." : `: ${ahead} ${ahead === 1 ? "run goes" : "runs go"} first.`}` }
}

/** A pod that a run without a place must not have: left by a crash between two writes. One that it reuses is its place. */
const withoutPod = (seen: Observation, decision: Decision): Decision =>
  seen.pod === null || seen.pod.deleting
    ? decision
    : seen.run.engineRun !== seen.run.id && seen.pod.lost === null
      ? enter("provisioning", "Its engine is there already.")
      : act("Removes an engine that lost its place.", Action.RemovePod({ uid: seen.pod.uid, force: seen.pod.lost !== null }))

/** The organization's own turn. */
export const waiting = (seen: Observation): Decision => {
  const { phase, reason } = placement(seen)
  return withoutPod(seen, phase === "waiting" ? wait(reason) : enter(phase, reason))
}

/** The pool's capacity. The organization's turn has come: an older run of the model cannot appear any more, and a limit holds for those who come later. */
export const queued = (seen: Observation): Decision => {
  const { phase, reason } = placement({ ...seen, run: { ...seen.run, olderRun: null, gpuLimit: null } })
  // An engine that is still leaving holds its GPUs and its name.
  if (seen.pod?.deleting === true) return wait("Waits for its earlier engine to be gone.")
  return withoutPod(seen, phase === "queued" ? wait(reason) : enter(phase, reason))
}
