import type { Observation } from "../observation/Observation.ts"
import { Action } from "./Decision.ts"

/** Records the image on trial or in service, and its digest, if that is not done yet. */
export const noteImage = ({ pod, run }: Observation): ReadonlyArray<Action> => {
  const { revision } = run
  if (revision === null || pod === null || pod.image === null) return []
  const { image, imageDigest: digest } = pod
  // The image of a verified revision is never overwritten by an image that someone set on its pod later.
  if (revision.engineImage !== null && (revision.engineImage !== image || revision.engineDigest !== null || digest === null)) return []
  return [Action.RecordEngineImage({ image, digest })]
}

/**
 * Replaces the pod if its image is not the one that was tried: the tag was moved and the container restarted. The next
 * pod refers to the image by digest. This also applies to a pod that only served the merged model. Null if the image is
 * right or unknown.
 */
export const replaceChanged = ({ merged, pod, run }: Observation): { readonly message: string; readonly actions: ReadonlyArray<Action> } | null => {
  if (pod !== null && pod.merge !== null && merged === "none") {
    return {
      message: "The engine serves the merged model, which is no longer needed. It restarts with the base and the adapter.",
      actions: [Action.RemovePod({ uid: pod.uid, force: false })]
    }
  }
  const tried = run.revision?.engineDigest ?? null
  if (pod === null || pod.imagePinned || tried === null || pod.imageDigest === null || pod.imageDigest === tried) return null
  const message = `The image ${pod.image} now has the digest ${pod.imageDigest}, but ${tried} was verified. The engine is replaced with the verified image.`
  return { message, actions: [Action.RecordEvent({ reason: "EngineImageChanged", about: pod.uid, message }), Action.RemovePod({ uid: pod.uid, force: false })] }
}
