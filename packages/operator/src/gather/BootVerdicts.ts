import type { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { BootSeen, PodSeen } from "../decide/Observation.ts"
import type { PodClass } from "../resources/HostClassResource.ts"

/** What was found of an engine's latest start, by the run whose engine it is. Only a memory: after a restart of ours an engine without traffic is compared once more. */
export type BootVerdicts = Map<DeploymentId, NonNullable<BootSeen["verdict"]> & { readonly boot: string }>

/** A start of an engine: another one where its container started again. */
const bootOf = ({ restarts, uid }: Pick<PodSeen, "restarts" | "uid">): string => `${uid} ${restarts}`

/**
 * What is known of the engine's latest start; null where there is nothing that it could be compared with: neither fingerprints nor the likelihood of texts, or those of
 * another card.
 */
export const bootSeen = (verdicts: BootVerdicts, { engineRun, revision }: Run, podClass: PodClass | null, pod: PodSeen | null): BootSeen | null => {
  const checks = revision?.checks ?? null
  if (pod === null || podClass === null || revision === null || checks === null) return null
  const { gpu_count, gpu_pool } = podClass.hostClass
  const card = checks.fingerprint_card ?? `${revision.estimate.gpu_pool} x${revision.estimate.gpu_count}`
  const scored = checks.checks.some(({ name, passed }) => name === "text_likelihood" && passed)
  if (card !== `${gpu_pool} x${gpu_count}` || (checks.fingerprints.length === 0 && !scored)) return null
  const known = verdicts.get(engineRun)
  const boot = bootOf(pod)
  return { boot, failures: known?.failures ?? 0, verdict: known?.boot === boot ? known : null }
}

/** Keeps what was found of a start. */
export const keepVerdict = (
  verdicts: BootVerdicts,
  engineRun: DeploymentId,
  pod: PodSeen,
  found: { readonly outcome: "same" | "drifted" | "differs"; readonly message: string; readonly at: number }
) => {
  const before = verdicts.get(engineRun)?.failures ?? 0
  verdicts.set(engineRun, { ...found, boot: bootOf(pod), failures: found.outcome === "differs" ? before + 1 : 0 })
}
