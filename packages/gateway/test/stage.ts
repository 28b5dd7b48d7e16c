import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http"
import {
  type Scope as ApiScope,
  Ids,
  KeyId,
  ModelId,
  modelCapabilities,
  nothingServed,
  OrgId,
  type RequestId,
  RevisionId,
  type Usage,
  UserId,
  zeroPrices
} from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import {
  Allowances,
  ApiKeys,
  type Caller,
  Catalog,
  KeyLookUpRefused,
  Metering,
  type RequestEnd,
  type RequestGivenUp,
  type RequestRefusal,
  type RequestStart,
  type Route,
  Routes,
  type SpendRefusal
} from "@seatrial/store"
import { ConfigProvider, Context, Effect, Layer, Option, Queue, type Scope, Stream } from "effect"
import { Gateway } from "../src/Gateway.ts"
import { listen } from "../src/listen.ts"

export type Recorded =
  | { readonly _tag: "Begin"; readonly row: RequestStart }
  | { readonly _tag: "End"; readonly row: RequestEnd }
  | { readonly _tag: "Refuse"; readonly row: RequestRefusal }

/** The state of the test doubles. Tests may change it at any time. */
export interface World {
  readonly caller: Caller
  /** The gateway learns of changes through `changes`. */
  route: Route
  readonly changes: Stream.Stream<void>
  /** How often demand for the route was reported. */
  used: number
  /** Why the caller may not spend, if its key has a spend limit. */
  spendRefusal: SpendRefusal | null
  /** All records handed to the store, in order. */
  readonly recorded: Array<Recorded>
  readonly checkpoints: Array<{ readonly id: RequestId; readonly usage: Usage }>
  /** Callbacks for the end of the key, one per request in progress. */
  readonly watchers: Set<() => void>
  /** Effects that commits wait for; they may fail. */
  onBegin: Effect.Effect<void>
  onEnd: Effect.Effect<void, RequestGivenUp>
  onRefuse: Effect.Effect<void>
}

export const apiKey = "right"

const makeWorld = Effect.gen(function* () {
  const ids = yield* Ids
  const orgId = yield* ids.make(OrgId)
  const scopes = new Set<ApiScope>(["inference:write"])
  const changes = yield* Queue.sliding<void>(1)
  let route: Route = {
    orgId,
    modelId: yield* ids.make(ModelId),
    model: "acme/tiny",
    revisionId: yield* ids.make(RevisionId),
    runtime: "reference",
    engineVersion: "reference-1",
    hfRevision: "c".repeat(40),
    maxModelLen: 2_048,
    prices: zeroPrices,
    endpoints: [],
    mayIdle: false,
    isPublic: false,
    adapted: false,
    concurrency: null,
    startSeconds: null,
    capabilities: modelCapabilities(engineFor("reference")?.served ?? nothingServed, { chat_template: "{{ messages }}", commit: "c".repeat(40) }),
    knowsDeveloper: false,
    sampling: null
  }
  const world: World = {
    caller: { keyId: yield* ids.make(KeyId), orgId, orgSlug: "acme", userId: yield* ids.make(UserId), scopes, firstPurchase: true, spendLimited: false },
    changes: Stream.fromQueue(changes),
    get route() {
      return route
    },
    set route(changed) {
      route = changed
      Queue.offerUnsafe(changes, undefined)
    },
    used: 0,
    spendRefusal: null,
    recorded: [],
    checkpoints: [],
    watchers: new Set(),
    onBegin: Effect.void,
    onEnd: Effect.void,
    onRefuse: Effect.void
  }
  return world
})

const record = <E>({ recorded }: World, entry: Recorded, commit: () => Effect.Effect<void, E>) =>
  Effect.suspend(() => {
    recorded.push(entry)
    return commit()
  })

const doubles = (world: World) =>
  Layer.mergeAll(
    Layer.mock(ApiKeys)({
      identify: (text, addressOf) => {
        if (text === "guessed") return Effect.fail(new KeyLookUpRefused({ retryAfter: addressOf() === "198.51.100.1" ? 7 : 60 }))
        if (text === "reader") return Option.some({ ...world.caller, scopes: new Set<ApiScope>(["models:read"]) })
        return text === apiKey ? Option.some(world.caller) : Effect.succeedNone
      },
      watch: (_, onEnd) => {
        world.watchers.add(onEnd)
        return () => void world.watchers.delete(onEnd)
      }
    }),
    Layer.mock(Allowances)({ check: () => world.spendRefusal }),
    Layer.mock(Catalog)({ ownedBy: () => Effect.succeed([]), find: () => Effect.succeedNone }),
    Layer.succeed(
      Routes,
      Routes.of({
        find: (orgId, model) => Effect.sync(() => (orgId === world.route.orgId && model === world.route.model ? Option.some(world.route) : Option.none())),
        known: (orgId, model) => (orgId === world.route.orgId && model === world.route.model ? world.route : undefined),
        ofModel: (id) => (id === world.route.modelId ? world.route : undefined),
        changes: world.changes,
        unproven: Stream.never,
        use: () => Effect.sync(() => void world.used++),
        reportLoads: () => Effect.void,
        placedEngine: () => Effect.succeed({ failing: null }),
        markReachable: () => Effect.void
      })
    ),
    Layer.succeed(
      Metering,
      Metering.of({
        enter: (row, settled) => Effect.runFork(record(world, { _tag: "Begin", row }, () => world.onBegin)).addObserver(settled),
        end: (row) => record(world, { _tag: "End", row }, () => world.onEnd),
        refuse: (row) => record(world, { _tag: "Refuse", row }, () => world.onRefuse),
        checkpoint: ({ id }, usage) => Effect.sync(() => void world.checkpoints.push({ id, usage })),
        sweep: Effect.succeed(0)
      })
    )
  )

export interface Stage {
  readonly world: World
  readonly address: string
}

/**
 * A listening gateway with test doubles of the store. `settings` uses the names of the configuration. The last
 * finalizer is the listener's.
 */
export const makeStage = Effect.fnUntraced(function* (
  urls: ReadonlyArray<string>,
  settings: Readonly<Record<string, number | string>> = {},
  grace = 0
): Effect.fn.Return<Stage, never, Scope.Scope> {
  const world = yield* makeWorld.pipe(Effect.provide(Ids.layer))
  world.route = { ...world.route, endpoints: urls.map((url, index) => ({ url, pod: `pod-${index}` })) }
  const context = yield* Layer.build(
    Gateway.layer.pipe(Layer.provide([doubles(world), Ids.layer]), Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings))))
  ).pipe(Effect.orDie)
  const port = yield* Effect.orDie(listen(Context.get(context, Gateway).handler, { host: "127.0.0.1", port: 0, grace }))
  return { world, address: `http://127.0.0.1:${port}` }
})

/** Lets a millisecond pass, also under a TestClock. A loop without a pause would keep a processor busy. */
export const pause = Effect.callback<void>((resume) => void setTimeout(() => resume(Effect.void), 1))

/** Waits until the condition holds. The time limit is long enough for a busy machine. */
export const soon = (condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (!condition()) yield* pause
  }).pipe(Effect.timeout("60 seconds"), Effect.orDie)

/** The answer as the caller receives it. */
export interface ReceivedAnswer {
  readonly request: ClientRequest
  response: IncomingMessage | undefined
  bytes: Buffer
  /** `end`: complete according to the protocol; `cut`: anything else. */
  ended: "end" | "cut" | undefined
  readonly text: () => string
  readonly status: () => number | undefined
  readonly headers: () => IncomingHttpHeaders
}

export interface SendOptions {
  readonly path?: string
  readonly method?: string
  readonly key?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** A string that is sent unchanged, or a value that is sent as JSON. */
  readonly body?: unknown
  /** Does not read the answer. */
  readonly unread?: boolean
}

export const chat = { model: "acme/tiny", messages: [{ role: "user", content: "hi" }] }
export const chatStream = { ...chat, stream: true }

/** Sends a request and returns at once. The result is updated as the answer arrives. */
export const send = (
  address: string,
  { body = chatStream, headers = {}, key = apiKey, method = "POST", path = "/v1/chat/completions", unread }: SendOptions = {}
) =>
  Effect.sync((): ReceivedAnswer => {
    const outgoing = request(`${address}${path}`, {
      method,
      agent: false,
      headers: { "content-type": "application/json", ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers }
    })
    const received: ReceivedAnswer = {
      request: outgoing,
      response: undefined,
      bytes: Buffer.alloc(0),
      ended: undefined,
      text: () => received.bytes.toString("utf8"),
      status: () => received.response?.statusCode,
      headers: () => received.response?.headers ?? {}
    }
    outgoing.on("error", () => {
      received.ended ??= "cut"
    })
    outgoing.on("response", (incoming) => {
      received.response = incoming
      incoming.on("error", () => {})
      incoming.on("close", () => {
        received.ended ??= incoming.complete ? "end" : "cut"
      })
      if (unread === true) return
      incoming.on("data", (bytes: Buffer) => {
        received.bytes = Buffer.concat([received.bytes, bytes])
      })
    })
    outgoing.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body))
    return received
  })

/** Sends a request and waits for the complete answer. */
export const fetched = Effect.fnUntraced(function* (address: string, options: SendOptions = {}) {
  const received = yield* send(address, options)
  yield* soon(() => received.ended !== undefined)
  return received
})

/** Kind, status and code of the last record. */
export const outcomes = ({ recorded }: World) =>
  recorded.map(({ _tag, row }) => (_tag === "Begin" ? "Begin" : `${_tag} ${row.statusCode}${row.error === null ? "" : ` ${row.error.code}`}`))

/** The record of a request's end. Dies if there is not exactly one. */
export const endOf = ({ recorded }: World): RequestEnd => {
  const ends = recorded.flatMap((entry) => (entry._tag === "End" ? [entry.row] : []))
  const [end] = ends
  if (end === undefined || ends.length > 1) throw new Error(`${ends.length} ends were recorded`)
  return end
}
