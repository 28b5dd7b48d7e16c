import { Data } from "effect"

/** The reference of the run's commit, as far as its host class computes references. */
export type ObservedReference = Data.TaggedEnum<{
  /** There is nothing to do. `code`: why there is no reference; null if there is one, or if the class computes none. */
  Settled: { readonly code: string | null }
  /** The run needs a reference and has no Job for it yet. */
  Absent: Record<never, never>
  /** A Job computes it. */
  Active: Record<never, never>
  /** Its Job is being deleted. */
  Leaving: Record<never, never>
  /**
   * Its Job has ended. `pod`: the pod whose log has the result. `code`: why it has none, which another attempt would not
   * change.
   */
  Ended: { readonly pod: string | null; readonly code: string | null }
  /** There is a Job that no run needs. `code`: as in `Settled`. */
  Unneeded: { readonly code: string | null }
}>
export const ObservedReference = Data.taggedEnum<ObservedReference>()

/** Whether a result is expected without further action. */
export const isComing = (reference: ObservedReference): boolean =>
  reference._tag === "Active" || reference._tag === "Leaving" || (reference._tag === "Ended" && reference.code === null)

/** Why a trial that starts now has no reference; null if there is one, or if the class computes none. */
export const missingCode = (reference: ObservedReference): string | null =>
  ObservedReference.$match(reference, {
    Settled: ({ code }) => code,
    Unneeded: ({ code }) => code,
    Absent: () => "not_started",
    Active: () => "still_computing",
    Leaving: () => "still_computing",
    Ended: ({ code }) => code ?? "still_computing"
  })
