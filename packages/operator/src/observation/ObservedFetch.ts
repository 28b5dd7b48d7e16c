import type { NamedFailure } from "@seatrial/domain"
import type { DownloadState } from "@seatrial/hub"
import { Data } from "effect"

type None = Record<never, never>

/** Why a download's pod does not run. The sentence quotes the cluster. */
export interface FetchObstacle {
  readonly message: string
  /** Unix milliseconds until which the obstacle is part of a normal start; null if it never is. */
  readonly usualUntil: number | null
  /** Since when the Job has no pod, Unix milliseconds; absent if it has one. */
  readonly podMissingSince?: number
}

/** The Job that downloads the weights. */
export type ObservedFetch = Data.TaggedEnum<{
  Absent: None
  /**
   * `obstacle`: why its pod does not run. `progress`: null until the download reports some. `outdated`: the operator
   * would create a different Job now, for example because the address of the hub has changed. `runsSince`: when its pod
   * started, Unix milliseconds. `lastFailure`: why the previous attempt ended.
   */
  Active: {
    readonly obstacle: FetchObstacle | null
    readonly progress: DownloadState | null
    readonly outdated?: boolean
    readonly runsSince?: number
    readonly lastFailure?: NamedFailure
  }
  Succeeded: None
  /** `endedAt`: Unix milliseconds; null if the cluster does not report it. */
  Failed: { readonly failure: NamedFailure; readonly endedAt: number | null }
  /** The Job is being deleted. */
  Leaving: None
}>
export const ObservedFetch = Data.taggedEnum<ObservedFetch>()
