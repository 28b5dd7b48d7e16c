import { Context, Data, type Effect, type Option, type Schema, type Stream } from "effect"

/** Which kind of object a call is about, and the schema that its JSON is decoded with. */
export interface Resource<A extends KubeObject> {
  /** `""` for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  readonly schema: Schema.Codec<A, unknown>
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: ReadonlyArray<string>
  readonly ownerReferences?: ReadonlyArray<OwnerReference>
}

export interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

export interface Selection {
  /** Absent: all namespaces (or a cluster-scoped resource). */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/**
 * What the API server, or the way to it, answered.
 * `Conflict` is 409 (also AlreadyExists), `Gone` 410, `Retryable` 429, 5xx and lost connections,
 * `Denied` 401 and 403, `Invalid` 400, 415 and 422, `NotFound` 404.
 */
export class KubeError extends Data.TaggedError("KubeError")<{
  readonly reason: "NotFound" | "Conflict" | "Gone" | "Retryable" | "Denied" | "Invalid"
  readonly message: string
  readonly status?: number
  /** From `Retry-After`, in milliseconds. */
  readonly retryAfter?: number
}> {}

/** What a list-and-watch tells: a full list (at the start, and after every gap), then single changes. */
export type WatchEvent<A> = Data.TaggedEnum<{
  Synced: { readonly items: ReadonlyArray<A> }
  Changed: { readonly object: A }
  Removed: { readonly object: A }
}>

export interface DeleteOptions {
  readonly uid?: string
  readonly resourceVersion?: string
  readonly propagation?: "Background" | "Foreground" | "Orphan"
  readonly gracePeriodSeconds?: number
}

/** The Kubernetes API. Server-side apply carries the field manager `seatrial` and takes conflicting fields over. */
export class KubeClient extends Context.Service<
  KubeClient,
  {
    readonly get: <A extends KubeObject>(resource: Resource<A>, name: string, namespace?: string) => Effect.Effect<Option.Option<A>, KubeError>
    readonly list: <A extends KubeObject>(resource: Resource<A>, selection: Selection) => Effect.Effect<ReadonlyArray<A>, KubeError>
    /** Never ends by itself and never fails for what passes: it retries with back-off, relists after a gap, and fails only when access is denied or the kind does not exist. */
    readonly watch: <A extends KubeObject>(resource: Resource<A>, selection: Selection) => Stream.Stream<WatchEvent<A>, KubeError>
    readonly create: <A extends KubeObject>(resource: Resource<A>, object: A) => Effect.Effect<A, KubeError>
    /** Replaces; the object's `resourceVersion`, where present, must be the stored one. */
    readonly update: <A extends KubeObject>(resource: Resource<A>, object: A) => Effect.Effect<A, KubeError>
    readonly updateStatus: <A extends KubeObject>(resource: Resource<A>, object: A) => Effect.Effect<A, KubeError>
    /** Server-side apply of the fields given. `object` is plain JSON with `apiVersion`, `kind` and `metadata.name`. */
    readonly apply: <A extends KubeObject>(resource: Resource<A>, object: KubeObject) => Effect.Effect<A, KubeError>
    readonly applyStatus: <A extends KubeObject>(resource: Resource<A>, object: KubeObject) => Effect.Effect<A, KubeError>
    readonly mergePatch: <A extends KubeObject>(
      resource: Resource<A>,
      name: string,
      namespace: string | undefined,
      patch: unknown
    ) => Effect.Effect<A, KubeError>
    /** Not-found is success. */
    readonly remove: <A extends KubeObject>(
      resource: Resource<A>,
      name: string,
      namespace: string | undefined,
      options?: DeleteOptions
    ) => Effect.Effect<void, KubeError>
    /** The container's log so far, at most `tailLines` lines. */
    readonly podLog: (
      name: string,
      namespace: string,
      options?: { readonly container?: string; readonly tailLines?: number }
    ) => Effect.Effect<string, KubeError>
  }
>()("seatrial/KubeClient") {}
