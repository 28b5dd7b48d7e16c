import { Data } from "effect"

/** The reference of the run's commit, as far as its host class computes references. */
export type ObservedReference = Data.TaggedEnum<{
  /** There is nothing to do. `code`: why there is no reference; null if there is one, or if the class computes none. */
  Settled: { readonly code: string | null }
  /** The run needs a reference, and may create its Job. */
  Absent: Record<never, never>
  /** The run needs a reference. Its Job is created when other Jobs have ended. */
  Waiting: Record<never, never>
  /** There is a Job, and no node has its pod. */
  Unplaced: Record<never, never>
  /** A Job computes it. */
  Active: Record<never, never>
  /** Its Job is being deleted. */
  Leaving: Record<never, never>
  /**
   * Its Job has ended. `pod`: the pod whose log has the result. `code`: why it has none, which another attempt would not
   * change.
   */
  Ended: { readonly pod: string | null; readonly code: string | null }
}>
export const ObservedReference = Data.taggedEnum<ObservedReference>()

const coming: ReadonlySet<ObservedReference["_tag"]> = new Set(["Waiting", "Unplaced", "Active", "Leaving"])

/** Whether there may be a result without further action of the run. */
export const isComing = (reference: ObservedReference): boolean => coming.has(reference._tag) || (reference._tag === "Ended" && reference.code === null)

/** Why a trial that starts now has no reference; null if there is one, or if the class computes none. */
export const missingCode = (reference: ObservedReference): string | null =>
  ObservedReference.$match(reference, {
    Settled: ({ code }) => code,
    Absent: () => "not_started",
    Waiting: () => "not_started",
    Unplaced: () => "not_started",
    Active: () => "still_computing",
    Leaving: () => "still_computing",
    Ended: ({ code }) => code ?? "still_computing"
  })
