import type { HostClass } from "@seatrial/domain"
import type { AlarmedEngine, Run, RunRevision } from "@seatrial/store"
import { type Effect, Semaphore } from "effect"
import type { ObservedBoot, ObservedPod } from "../observation/ObservedPod.ts"
import type { PodClass } from "../resources/PodClass.ts"

/** The result of comparing a start of an engine. */
export type BootVerdict = NonNullable<ObservedBoot["verdict"]> & { readonly boot: string }

/**
 * The result of comparing an engine's latest start, by the name of its pod. Kept only in memory: after a restart of the
 * operator, an engine without traffic is compared again.
 */
export type BootVerdicts = Map<string, BootVerdict>

/**
 * The turn of each run to compare texts. Its engines are compared at the same time, but each comparison of texts reads
 * the model's tokenizer, which takes memory and time that all runs share.
 */
export type TextTurns = Map<Run["id"], Semaphore.Semaphore>

/** Runs one effect of the run at a time. */
export const inTurn =
  (turns: TextTurns, id: Run["id"]) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const turn = turns.get(id) ?? Semaphore.makeUnsafe(1)
    turns.set(id, turn)
    return turn.withPermit(effect)
  }

/** Identifies a start of an engine. It changes when the container restarts. */
const bootOf = ({ restarts, uid }: Pick<ObservedPod, "restarts" | "uid">): string => `${uid} ${restarts}`

/** Remembers that the probes of an engine differ from the verified answers. Its next start counts as another one. */
export const keepAlarm = (verdicts: BootVerdicts, { alarmedAt, lately, pod, podUid, probes, restarts, since }: AlarmedEngine) =>
  verdicts.set(pod, {
    outcome: "suspect",
    message: `${probes} ${probes === 1 ? "probe" : "probes"} since ${new Date(since).toISOString()}.`,
    boot: bootOf({ uid: podUid, restarts }),
    failures: lately,
    at: alarmedAt
  })

/** Whether the revision has fingerprints or likelihoods from the GPUs of the host class. */
const isComparable = ({ checks, estimate }: RunRevision, { gpu_count, gpu_pool }: HostClass): boolean => {
  if (checks === null) return false
  const card = checks.fingerprint_card ?? `${estimate.gpu_pool} x${estimate.gpu_count}`
  const hasLikelihoods = checks.checks.some(({ name, passed }) => name === "text_likelihood" && passed)
  return card === `${gpu_pool} x${gpu_count}` && (checks.fingerprints.length > 0 || hasLikelihoods)
}

/** The latest start of the engine. Null if there is nothing to compare it with. */
export const observeBoot = (verdicts: BootVerdicts, { revision }: Run, podClass: PodClass | null, pod: ObservedPod | null): ObservedBoot | null => {
  if (pod === null || podClass === null || revision === null || !isComparable(revision, podClass.hostClass)) return null
  const known = verdicts.get(pod.name)
  const boot = bootOf(pod)
  return { boot, failures: known?.failures ?? 0, verdict: known?.boot === boot ? known : null }
}

/** Remembers the result for a start. */
export const keepVerdict = (
  verdicts: BootVerdicts,
  pod: ObservedPod,
  result: { readonly outcome: "same" | "drifted" | "differs"; readonly message: string; readonly at: number }
) => {
  const known = verdicts.get(pod.name)
  // A restart in the pod of an alarm is not a replacement. Its start counts as the first with different answers.
  const isSamePod = known?.outcome === "suspect" && known.boot.startsWith(`${pod.uid} `)
  const before = isSamePod ? 0 : (known?.failures ?? 0)
  verdicts.set(pod.name, { ...result, boot: bootOf(pod), failures: result.outcome === "differs" ? before + 1 : 0 })
}
