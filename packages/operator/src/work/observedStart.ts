import { weightCommits } from "@seatrial/domain"
import type { Pod } from "@seatrial/kube"
import type { RunRevision } from "@seatrial/store"
import type { ObservedStart } from "@seatrial/trial"
import { firstContainer } from "../gather/observeCopy.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { engineContainer } from "../resources/objectNames.ts"
import { weightsArguments, weightsPath } from "../resources/weightFiles.ts"

/**
 * How the engine's pod was started, as the API server reports it: which files were checked before, and what the
 * engine's container can read.
 */
export const observedStart = (pod: Pod | undefined, observation: ObservedPod, revision: RunRevision): ObservedStart => {
  const first = pod?.spec?.initContainers?.find(({ name }) => name === firstContainer(pod))
  const engine = pod?.spec?.containers.find(({ name }) => name === engineContainer)
  // The hash of the list of files, which the init container verified.
  const manifests = weightsArguments(revision, null).filter((word) => word.includes("manifest="))
  const isVerified = observation.copy?.done === true && manifests.every((word) => first?.args?.includes(word) === true)
  const mounts = engine?.volumeMounts?.filter(({ name }) => name === "weights") ?? []
  const digest = revision.engineDigest
  return {
    verifiedFiles: isVerified ? weightCommits(revision.facts).reduce((sum, { files }) => sum + files.length, 0) : null,
    readOnly: mounts.length > 0 && mounts.every(({ readOnly }) => readOnly === true),
    offline: engine?.env?.some(({ name, value }) => name === "HF_HUB_OFFLINE" && value === "1") === true,
    localPath: engine?.args?.some((word) => word.endsWith(weightsPath("/models", revision))) === true,
    ownImage: digest === null || observation.imageDigest === null ? null : digest === observation.imageDigest
  }
}
