import { engineFor } from "@seatrial/engines"
import type { KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { Observation } from "../observation/Observation.ts"
import { type PodClass, weightsClaimOf } from "../resources/PodClass.ts"
import { enginePod } from "./enginePod.ts"

/**
 * The pod that the run's engine should have now. It serves the merged model if that is `wanted`. Null if the run has no
 * revision, host class or engine.
 */
export const wantedPod = (
  run: Run,
  podClass: PodClass | null,
  settings: Pick<OperatorSettings, "fetchImage" | "namespace" | "pullSecrets" | "weightsClaim">,
  {
    avoid = [],
    merged = "none",
    ordinal = 0
  }: { readonly merged?: Observation["merged"]; readonly avoid?: ReadonlyArray<string>; readonly ordinal?: number } = {}
): KubeObject | null => {
  const { engineRun, revision } = run
  const engine = revision === null ? undefined : engineFor(revision.settings.runtime)
  if (revision === null || podClass === null || engine === undefined) return null
  const weightsClaim = weightsClaimOf(podClass, settings)
  return enginePod({ run: { ...run, id: engineRun }, revision, podClass, engine, settings, weightsClaim, merged: merged === "wanted", avoid, ordinal })
}
