import { Action } from "./Decision.ts"
import type { Observation } from "./Observation.ts"

/** Notes which image is tried or serves, and its digest, where that was not done yet. */
export const noteImage = ({ pod, run }: Observation): ReadonlyArray<Action> => {
  const { revision } = run
  if (revision === null || pod === null || pod.image === null) return []
  const { image, imageDigest: digest } = pod
  // What a revision was verified with is not what its pod was given since, if somebody gave it another.
  if (revision.engineImage !== null && (revision.engineImage !== image || revision.engineDigest !== null || digest === null)) return []
  return [Action.RecordEngineImage({ image, digest })]
}

/**
 * Takes the pod whose image is not the one that was tried, since its name stands for another by now and its container started again; the next one is asked for by the
 * digest. So too one that an adapter was only compared with. Null where it is the right one, or nobody can tell.
 */
export const replaceChanged = ({ merged, pod, run }: Observation): { readonly message: string; readonly actions: ReadonlyArray<Action> } | null => {
  if (pod !== null && pod.merge !== null && merged === "none") {
    return {
      message: "The engine serves what the adapter was compared with. The adapter takes its place.",
      actions: [Action.RemovePod({ uid: pod.uid, force: false })]
    }
  }
  const tried = run.revision?.engineDigest ?? null
  if (pod === null || pod.imagePinned || tried === null || pod.imageDigest === null || pod.imageDigest === tried) return null
  const message = `The image ${pod.image} is ${pod.imageDigest} now, and ${tried} was tried. The engine is replaced by one of that.`
  return { message, actions: [Action.Tell({ reason: "EngineImageChanged", about: pod.uid, message }), Action.RemovePod({ uid: pod.uid, force: false })] }
}
