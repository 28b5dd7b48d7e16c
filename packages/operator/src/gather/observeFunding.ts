import { type Run, Runs } from "@seatrial/store"
import { Effect } from "effect"
import type { Observation } from "../observation/Observation.ts"
import { keepSince } from "./keepSince.ts"

/**
 * When this operator first observed that the balance of an organization was used up, Unix milliseconds. Kept only in
 * memory: after a restart the grace period begins again.
 */
export type UsedUpSince = Map<Run["orgId"], number>

/** Whether the run is about to get GPUs, or its model has an engine that serves or is held. */
const usesGpus = ({ engineRun, id, modelDeleted, modelDisabled, phase, revision }: Run, isPlaced: boolean, hasPod: boolean): boolean =>
  isPlaced ||
  (phase === "activated" && !modelDeleted && !modelDisabled && (revision?.status === "active" || (revision?.status === "draft" && engineRun === id && hasPod)))

/** Reads why the run's organization gets no GPUs; null if it gets some, or if the run uses none. */
export const observeFunding = Effect.fnUntraced(function* (
  usedUpSince: UsedUpSince,
  run: Run,
  uses: { readonly isPlaced: boolean; readonly hasPod: boolean; readonly graceMillis: number; readonly now: number }
): Effect.fn.Return<Observation["funding"], never, Runs> {
  const { graceMillis, hasPod, isPlaced, now } = uses
  if (!usesGpus(run, isPlaced, hasPod)) return null
  const { billingSuspendedAt, orgId } = run
  if (billingSuspendedAt !== null) return { why: "suspended", releaseAt: billingSuspendedAt + graceMillis }
  const why = run.spendLimited ? yield* (yield* Runs).usedUp(orgId) : null
  const since = keepSince(usedUpSince, orgId, why === "balance", now)
  if (since !== null) return { why: "balance", releaseAt: since + graceMillis }
  return why === null ? null : { why, releaseAt: null }
})
