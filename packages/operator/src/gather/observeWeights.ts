import type { Run } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { Observation } from "../observation/Observation.ts"
import { type PodClass, weightsClaimOf } from "../resources/PodClass.ts"
import { weightsManifest } from "../resources/weightFiles.ts"

/** The identity of the store that holds the run's weights: claim and namespace. */
export const weightsStore = (podClass: PodClass | null, settings: Pick<OperatorSettings, "namespace" | "weightsClaim">): string =>
  `${settings.namespace}/${weightsClaimOf(podClass, settings)}`

/**
 * The record of the run's weights in that store. Null if the list of files has changed or the host class is
 * gone.
 */
export const observeWeights = (run: Run, podClass: PodClass | null, settings: Pick<OperatorSettings, "namespace" | "weightsClaim">): Observation["weights"] => {
  const { createdAt, id, revision, storedWeights } = run
  if (revision === null || podClass === null || storedWeights.length === 0) return null
  const store = weightsStore(podClass, settings)
  const stored = storedWeights.find((each) => each.store === store)
  if (stored === undefined || stored.manifest !== weightsManifest(revision)) return null
  return { own: stored.verifiedBy === id || stored.verifiedAt > createdAt }
}
