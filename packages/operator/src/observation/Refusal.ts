/**
 * The API server refuses to create an object of a run: an admission policy, a webhook, a LimitRange, a ResourceQuota or a
 * missing permission. The operator repeats the request.
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

/** `other`: an object without which the run goes on, or its custom resource. */
export type RefusedKind = "pod" | "download" | "other"

/** The reason of the condition `Ready` and of the event, by kind of object. */
export const refusalReasons = { pod: "PodRefused", download: "DownloadRefused", other: "ObjectRefused" } as const satisfies Record<RefusedKind, string>
