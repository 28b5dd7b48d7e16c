import { type Config, Context, Effect, Exit, Fiber, Layer, Option, Predicate, Schema, type Stream } from "effect"
import type { KubeConnectionError } from "./access.ts"
import { decoderOf, logUndecodable } from "./decodeObject.ts"
import { KubeConnection, type KubeConnectionConfig } from "./KubeConnection.ts"
import { KubeError } from "./KubeError.ts"
import { defaultSettings, type KubeRequest, type KubeSettings, type KubeTransport, makeTransport } from "./KubeTransport.ts"
import { apiVersionOf, type KubeObject, pathOf, type Resource, type Selection } from "./Resource.ts"
import type { Unreadable, WatchEvent } from "./WatchEvent.ts"
import { type Listed, watchResource } from "./watch.ts"

export interface DeleteOptions {
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  /** Absent: `Background` for every kind. */
  readonly propagation?: "Background" | "Foreground" | "Orphan"
  readonly gracePeriodSeconds?: number
}

const fieldManager = "seatrial"

/** Maximum size of one pod's log, for any line length. */
const maxLogBytes = 4 * 1024 * 1024

const ListMetadata = Schema.Struct({ resourceVersion: Schema.optionalKey(Schema.String), continue: Schema.optionalKey(Schema.String) })
const ListBody = Schema.fromJsonString(Schema.Struct({ metadata: ListMetadata, items: Schema.NullOr(Schema.Array(Schema.Unknown)) }))
const decodeList = Schema.decodeUnknownEffect(ListBody)
const decodeListHead = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ metadata: ListMetadata })))
const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))

const unreadable = (what: string) => new KubeError({ reason: "Invalid", message: `invalid response of the API server: expected ${what}` })

const decodeBody = Effect.fnUntraced(function* <A extends KubeObject>(resource: Resource<A>, body: string) {
  const json = yield* Effect.mapError(decodeJson(body), () => unreadable("JSON"))
  const object = decoderOf(resource)(json)
  if (Exit.isSuccess(object)) return object.value
  yield* logUndecodable(resource, json, object.cause)
  return yield* unreadable(`a ${resource.kind}`)
})

/** The object that a request is about. A new one has no name in the path. */
interface ObjectPath {
  readonly name?: string | undefined
  readonly namespace?: string | undefined
  readonly subresource?: string | undefined
}

const pathOfObject = ({ metadata: { name, namespace } }: KubeObject, subresource?: string): ObjectPath => ({ name, namespace, subresource })

/** A request about one object whose response is that object. */
const sendFor = <A extends KubeObject>(
  transport: KubeTransport,
  resource: Resource<A>,
  { name, namespace, subresource }: ObjectPath,
  request: Omit<KubeRequest, "path">
) =>
  resource.namespaced && namespace === undefined
    ? Effect.fail(new KubeError({ reason: "Invalid", message: `${resource.kind} ${name ?? ""} needs a namespace` }))
    : transport.send({ ...request, path: pathOf(resource, namespace, name, subresource) }).pipe(Effect.flatMap((body) => decodeBody(resource, body)))

const typed = (resource: Resource<KubeObject>, object: object) => ({ apiVersion: apiVersionOf(resource), kind: resource.kind, ...object })

const encode = <A extends KubeObject>(resource: Resource<A>, object: A) =>
  Effect.gen(function* () {
    const encoded = yield* Effect.option(Schema.encodeEffect(resource.schema)(object))
    if (Option.isSome(encoded) && Predicate.isObject(encoded.value)) return typed(resource, encoded.value)
    return yield* new KubeError({ reason: "Invalid", message: `${resource.kind} ${object.metadata.name} does not match its schema` })
  })

/** Three times a page of ordinary objects, and several of the largest ones that a server stores (1.5 MB by default). Parsed, it may need 15 times as much. */
const maxPageBytes = 8 * 1024 * 1024

/** The text of one page of a list; `expired` if its continue token is too old; `large` if fewer objects must be requested. */
const readPage = (transport: KubeTransport, resource: Resource<KubeObject>, selection: Selection, limit: number | undefined, token: string | undefined) =>
  transport
    .send({
      method: "GET",
      path: pathOf(resource, selection.namespace),
      query: { labelSelector: selection.labelSelector, fieldSelector: selection.fieldSelector, limit, continue: token },
      ...(limit === undefined ? {} : { maxBytes: maxPageBytes })
    })
    .pipe(
      Effect.map((body) => ({ body })),
      Effect.catch((error) => {
        if (error.reason === "Gone" && token !== undefined) return Effect.succeed("expired" as const)
        if (error.reason === "TooLarge" && limit !== undefined && limit > 1) return Effect.succeed("large" as const)
        return Effect.fail(error)
      })
    )

const itemsKey = '"items":['

/**
 * The continue token of a page, read without its items. Undefined if there is no next page, or if the metadata follows the items, as in lists of custom
 * resources.
 */
const earlyToken = (body: string): string | undefined => {
  // Within a string of JSON, the quotes of this key would be escaped.
  const at = body.indexOf(itemsKey)
  if (at === -1) return undefined
  return Option.getOrUndefined(decodeListHead(`${body.slice(0, at + itemsKey.length)}]}`))?.metadata.continue
}

/**
 * All objects of a selection, page by page. The next page is requested before this one is parsed. A page that is too large is requested again with
 * an eighth of the objects. After each other page, the number doubles, up to `pageSize`. After two expired continue tokens, a list without large pages
 * is requested in one page.
 */
const listPaged = Effect.fnUntraced(function* <A extends KubeObject>(
  transport: KubeTransport,
  pageSize: number,
  resource: Resource<A>,
  selection: Selection
): Effect.fn.Return<Listed<A>, KubeError> {
  const decode = decoderOf(resource)
  let restarts = 0
  let limit = pageSize
  let hasLarge = false
  /** Of the requested page. */
  let token: string | undefined
  const request = Effect.suspend(() => readPage(transport, resource, selection, restarts < 2 || hasLarge ? limit : undefined, token))
  const requestNext = (after: string | undefined) => {
    if (after === undefined || after === "") return Effect.succeed(undefined)
    token = after
    return Effect.forkChild(request, { startImmediately: true })
  }
  let items: Array<A> = []
  let undecoded: Array<Unreadable> = []
  let page = yield* request
  while (true) {
    if (page === "large") {
      limit = Math.ceil(limit / 8)
      hasLarge = true
      page = yield* request
      continue
    }
    if (page === "expired") {
      restarts += 1
      token = undefined
      items = []
      undecoded = []
      page = yield* request
      continue
    }
    const { body } = page
    limit = Math.min(pageSize, limit * 2)
    const early = yield* requestNext(earlyToken(body))
    // The request leaves in the next turn of the event loop.
    yield* Effect.yieldNow
    const { items: sent, metadata } = yield* Effect.mapError(decodeList(body), () => unreadable("a list"))
    const next = early ?? (yield* requestNext(metadata.continue))
    for (const item of sent ?? []) {
      const object = decode(item)
      if (Exit.isSuccess(object)) items.push(object.value)
      else undecoded.push(...(yield* logUndecodable(resource, item, object.cause)))
    }
    if (next === undefined) return { items, unreadable: undecoded, resourceVersion: metadata.resourceVersion ?? "" }
    page = yield* Fiber.join(next)
  }
})

const deleteBody = (options: DeleteOptions | undefined) => ({
  apiVersion: "v1",
  kind: "DeleteOptions",
  // By default, the API server orphans the pods of a job for compatibility reasons.
  propagationPolicy: options?.propagation ?? "Background",
  gracePeriodSeconds: options?.gracePeriodSeconds,
  ...(options?.uid === undefined && options?.resourceVersion === undefined
    ? {}
    : { preconditions: { uid: options.uid, resourceVersion: options.resourceVersion } })
})

const make = Effect.fnUntraced(function* (settings: KubeSettings) {
  const transport = yield* makeTransport(settings)
  const listOf = <A extends KubeObject>(resource: Resource<A>, selection: Selection) => listPaged(transport, settings.pageSize, resource, selection)

  const applyTo = <A extends KubeObject>(resource: Resource<A>, object: KubeObject, subresource?: string) =>
    sendFor(transport, resource, pathOfObject(object, subresource), {
      method: "PATCH",
      body: typed(resource, object),
      contentType: "application/apply-patch+yaml",
      query: { fieldManager, force: true }
    })

  const replace = <A extends KubeObject>(resource: Resource<A>, object: A, subresource?: string) =>
    Effect.flatMap(encode(resource, object), (body) =>
      sendFor(transport, resource, pathOfObject(object, subresource), { method: "PUT", body, query: { fieldManager } })
    )

  return KubeClient.of({
    get: (resource, name, namespace) =>
      sendFor(transport, resource, { name, namespace }, { method: "GET" }).pipe(
        Effect.asSome,
        // For an unknown path, the server answers 404 without a Status: the kind does not exist.
        Effect.catchIf(
          (error) => error.reason === "NotFound" && error.statusReason !== undefined,
          () => Effect.succeedNone
        )
      ),
    list: (resource, selection) => Effect.map(listOf(resource, selection), (listed) => listed.items),
    watch: (resource, selection) => watchResource(transport, settings, listOf(resource, selection), resource, selection),
    create: (resource, object) =>
      sendFor(transport, resource, { namespace: object.metadata.namespace }, { method: "POST", body: typed(resource, object), query: { fieldManager } }),
    update: (resource, object) => replace(resource, object),
    updateStatus: (resource, object) => replace(resource, object, "status"),
    apply: (resource, object) => applyTo(resource, object),
    applyStatus: (resource, object) => applyTo(resource, object, "status"),
    mergePatch: (resource, name, namespace, body) =>
      sendFor(transport, resource, { name, namespace }, { method: "PATCH", body, contentType: "application/merge-patch+json", query: { fieldManager } }),
    remove: (resource, name, namespace, options) =>
      transport.send({ method: "DELETE", path: pathOf(resource, namespace, name), body: deleteBody(options) }).pipe(
        Effect.asVoid,
        Effect.catchIf(
          (error) => error.reason === "NotFound",
          () => Effect.void
        )
      ),
    podLog: (name, namespace, options) =>
      transport.send({
        method: "GET",
        path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/log`,
        query: { ...options, limitBytes: maxLogBytes },
        accept: "*/*"
      })
  })
})

/**
 * A client of the Kubernetes API. Server-side apply uses the field manager `seatrial` and takes over conflicting
 * fields.
 */
export class KubeClient extends Context.Service<
  KubeClient,
  {
    /** None if the object does not exist; `NotFound` if the kind does not exist. */
    readonly get: <A extends KubeObject>(resource: Resource<A>, name: string, namespace?: string) => Effect.Effect<Option.Option<A>, KubeError>
    readonly list: <A extends KubeObject>(resource: Resource<A>, selection: Selection) => Effect.Effect<ReadonlyArray<A>, KubeError>
    /**
     * Never ends by itself. It retries transient errors with back-off and relists after a gap. It fails only if access
     * is denied, or if the kind does not exist at the start. A kind that disappears later is awaited.
     */
    readonly watch: <A extends KubeObject>(resource: Resource<A>, selection: Selection) => Stream.Stream<WatchEvent<A>, KubeError>
    /**
     * `object` is plain JSON. Fails with `Conflict` if the object exists, and does not change it. Costs the API server
     * about half as much as an apply that creates the object.
     */
    readonly create: <A extends KubeObject>(resource: Resource<A>, object: A | KubeObject) => Effect.Effect<A, KubeError>
    /** Replaces the object. A `resourceVersion` in it must match the stored one. */
    readonly update: <A extends KubeObject>(resource: Resource<A>, object: A) => Effect.Effect<A, KubeError>
    readonly updateStatus: <A extends KubeObject>(resource: Resource<A>, object: A) => Effect.Effect<A, KubeError>
    /** Server-side apply of the fields in `object`: plain JSON with `apiVersion`, `kind` and `metadata.name`. */
    readonly apply: <A extends KubeObject>(resource: Resource<A>, object: KubeObject) => Effect.Effect<A, KubeError>
    readonly applyStatus: <A extends KubeObject>(resource: Resource<A>, object: KubeObject) => Effect.Effect<A, KubeError>
    readonly mergePatch: <A extends KubeObject>(
      resource: Resource<A>,
      name: string,
      namespace: string | undefined,
      patch: unknown
    ) => Effect.Effect<A, KubeError>
    /** Succeeds if the object does not exist. */
    readonly remove: <A extends KubeObject>(
      resource: Resource<A>,
      name: string,
      namespace: string | undefined,
      options?: DeleteOptions
    ) => Effect.Effect<void, KubeError>
    /**
     * The container's log: its last `tailLines` lines, by default everything from the start; at most 4 MiB. The
     * container is always named, because anything may add containers to a pod.
     */
    readonly podLog: (
      name: string,
      namespace: string,
      options: { readonly container: string; readonly tailLines?: number; readonly previous?: boolean; readonly timestamps?: boolean }
    ) => Effect.Effect<string, KubeError>
  }
>()("seatrial/KubeClient") {
  static readonly layerWith = (settings: Partial<KubeSettings>): Layer.Layer<KubeClient, never, KubeConnection> =>
    Layer.effect(KubeClient, make({ ...defaultSettings, ...settings }))

  static readonly layer: Layer.Layer<KubeClient, never, KubeConnection> = KubeClient.layerWith({})

  /**
   * The client for the cluster of `KUBECONFIG` and `KUBE_CONTEXT`. Without them: the cluster that the program runs in,
   * then the cluster of `~/.kube/config`.
   */
  static readonly layerConfig: Layer.Layer<KubeClient | KubeConnection, KubeConnectionError | Config.ConfigError> = KubeClient.layer.pipe(
    Layer.provideMerge(KubeConnection.layerConfig)
  )
}

/** The client for the cluster in these settings. */
export const layerKubeClient = (
  config: Config.Wrap<KubeConnectionConfig>
): Layer.Layer<KubeClient | KubeConnection, KubeConnectionError | Config.ConfigError> =>
  KubeClient.layer.pipe(Layer.provideMerge(KubeConnection.layerFrom(config)))
