/**
 * The API server refuses to create an object of a run: an admission policy, a webhook, a LimitRange, a ResourceQuota or
 * a missing permission. The operator repeats the request.
 */
export interface Refusal {
  /** For example `Pod/dep-01...-engine-0`. */
  readonly object: string
  readonly kind: RefusedKind
  /** The reason of the API server's answer, for example `Forbidden` or `Invalid`. */
  readonly reason: string
  /** The API server's message. It may name other objects of the cluster. */
  readonly message: string
  /** When this operator's request was refused first, Unix milliseconds. */
  readonly since: number
}

/** `optional`: an object without which the run goes on. `other`: a change of an object, or its deletion. */
export type RefusedKind = "pod" | "download" | "optional" | "other"

/** The reason of the condition `Ready` and of the event, by kind of object. */
export const refusalReasons = { pod: "PodRefused", download: "DownloadRefused", optional: "ObjectRefused", other: "ObjectRefused" } as const satisfies Record<
  RefusedKind,
  string
>
