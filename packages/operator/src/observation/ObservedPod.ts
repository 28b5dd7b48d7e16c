import type { NamedFailure } from "@seatrial/domain"
import type { DownloadState } from "@seatrial/hub"

/** The attempts of an init container. */
export interface ObservedAttempts {
  readonly running: boolean
  readonly done: boolean
  /** When the last attempt ended, Unix milliseconds; null if none has ended. */
  readonly endedAt: number | null
  /** The number of failed attempts, and the cause of the last one. */
  readonly failures: number
  readonly failure: NamedFailure | null
  /** Whether another attempt cannot help. */
  readonly final: boolean
}

/**
 * The copy of the weights to the pod's node, which runs before the engine starts, or the check of the weights in the
 * store.
 */
export interface ObservedCopy extends ObservedAttempts {
  /** Whether this is only a check of the weights in the store. */
  readonly checks?: boolean
  /** Whether the check cannot start because the store has no folder for the weights. */
  readonly absent?: true
  /** Null until the copy reports progress. */
  readonly progress: DownloadState | null
}

/** The merge of an adapter into its base, which runs before the engine that serves the merged model. */
export type ObservedMerge = ObservedAttempts

/** The latest start of an engine whose revision was verified. Times are Unix milliseconds. */
export interface ObservedBoot {
  /** Identifies the start. */
  readonly boot: string
  /** Consecutive starts with different answers, including this one. */
  readonly failures: number
  /**
   * `same`: the answers match the verified ones. `drifted`: the answers differ, but are as likely. `differs`: the
   * answers differ and are less likely. `suspect`: the start passed, but later probes differ; `failures` is then the
   * number of such alarms of the revision in the last day. `at`: when the comparison ended. Null if the start is not
   * compared yet.
   */
  readonly verdict: {
    readonly outcome: "same" | "drifted" | "differs" | "suspect"
    readonly message: string
    readonly failures: number
    readonly at: number
  } | null
}

/** The engine's pod. Times are Unix milliseconds. */
export interface ObservedPod {
  readonly name: string
  readonly uid: string
  /** The name of its node; null if the pod has none, or if the node no longer exists. */
  readonly node: string | null
  readonly createdAt: number
  /** The image of its container. */
  readonly image: string | null
  /** Digest (`sha256:...`) of the running image; null if the node does not report it. */
  readonly imageDigest: string | null
  /** Whether the pod refers to its image by digest, so that every start uses the same image. */
  readonly imagePinned: boolean
  /** Digest of the specification that the pod was created from; null if it has none. */
  readonly madeFrom: string | null
  readonly deleting: boolean
  readonly scheduled: boolean
  /** When the pod was bound to its node; null if it is not bound. */
  readonly scheduledAt: number | null
  /** Why the pod is unschedulable, as the scheduler reports it. */
  readonly unschedulable: { readonly since: number; readonly message: string } | null
  /** Whether a scheduling gate (of Kueue) holds the pod back. */
  readonly gated: boolean
  /** Null if the engine reads the store directly. */
  readonly copy: ObservedCopy | null
  /**
   * Null if the engine serves the model of the run. Otherwise it serves base and adapter merged, for comparison, and
   * never has traffic.
   */
  readonly merge: ObservedMerge | null
  /** Whether its container has ever run. */
  readonly started: boolean
  /** When its container started last, or ended last if it waits for a restart. */
  readonly startedAt: number | null
  readonly ready: boolean
  /**
   * The name of a container that something else added to the pod, for example a service mesh, if the pod is not ready
   * because of it. The engine itself is ready.
   */
  readonly unreadySidecar: string | null
  /** When its readiness changed last. */
  readonly readyChangedAt: number | null
  readonly restarts: number
  readonly lastExit: { readonly code: number; readonly reason: string } | null
  /** Why its container cannot start, for example `ImagePullBackOff`. */
  readonly blocked: string | null
  /**
   * Why the pod will never run again, for example because it was evicted or its node is gone. The model is not at
   * fault.
   */
  readonly lost: string | null
  /** Whether one of its GPUs or of its node's GPUs has failed. */
  readonly gpuFault: boolean
  /** When its node stopped responding. */
  readonly nodeDownSince: number | null
  /** `http://address:port`; null until the pod has an address. */
  readonly url: string | null
}

/** Identifies one start of an engine. The value changes when its container restarts. */
export const whichStart = (pod: ObservedPod | null): string => (pod === null ? "" : `${pod.uid} ${pod.restarts} ${pod.startedAt}`)
