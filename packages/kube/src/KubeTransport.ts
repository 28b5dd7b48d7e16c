import * as http from "node:http"
import * as https from "node:https"
import { Clock, Context, Duration, Effect, Predicate, type Scope } from "effect"
import { KubeConnection } from "./KubeConnection.ts"
import { fromAnswer, KubeError } from "./KubeError.ts"

export interface KubeSettings {
  /** From sending a request to the last byte of its response; for a watch, to the first byte. */
  readonly requestTimeout: Duration.Input
  /** The same for a request that may create an object: an admission webhook may take 30 seconds. */
  readonly createTimeout: Duration.Input
  /** Maximum number of objects in a page of a list. For each kind, one page is in memory as text and parsed, and the next one as text. */
  readonly pageSize: number
  /** Maximum number of sockets for requests. Further requests wait for a socket within their timeout. */
  readonly connections: number
  /** Maximum number of sockets for watches. Further watches never start. */
  readonly watches: number
  /** A watch without data for this long is reopened. Servers send bookmarks every minute. */
  readonly watchIdle: Duration.Input
  /** Period after which a watch starts over with a full list, plus or minus 20%. */
  readonly relistEvery: Duration.Input
  /** Delay after the first failure of a watch; doubles with each further failure. */
  readonly backoff: Duration.Input
  readonly maxBackoff: Duration.Input
}

export const defaultSettings: KubeSettings = {
  requestTimeout: "30 seconds",
  createTimeout: "40 seconds",
  pageSize: 250,
  connections: 32,
  watches: 64,
  watchIdle: "3 minutes",
  relistEvery: "30 minutes",
  backoff: "500 millis",
  maxBackoff: "30 seconds"
}

/**
 * Whether the current fiber may write. It is evaluated immediately before the first byte of a write is sent, after all
 * waiting (for credentials, a socket, a connection). Default: always.
 */
export const MayWrite = Context.Reference<() => boolean>("seatrial/MayWrite", { defaultValue: () => () => true })

export const notSent = new KubeError({ reason: "Retryable", message: "not sent: the lease has expired" })

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  readonly contentType?: string
  readonly accept?: string
  /** Fails with `TooLarge` if the response has more bytes (default: 256 MiB). */
  readonly maxBytes?: number
}

export interface KubeTransport {
  /** The body of a successful response. */
  readonly send: (request: KubeRequest) => Effect.Effect<string, KubeError>
  /** A successful response with an unread body. Closing the scope closes its socket immediately. */
  readonly open: (request: KubeRequest) => Effect.Effect<http.IncomingMessage, KubeError, Scope.Scope>
}

/** A larger response is aborted to bound memory. */
const maxBodyBytes = 256 * 1024 * 1024

const lost = (cause: unknown): KubeError => {
  const code = Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : undefined
  return new KubeError({
    reason: "Retryable",
    message: `the connection to the API server failed: ${code ?? (cause instanceof Error ? cause.message : "unknown")}`
  })
}

const readText = (response: http.IncomingMessage, maxBytes = maxBodyBytes): Effect.Effect<string, KubeError> =>
  Effect.tryPromise({
    try: async () => {
      const chunks: Array<Buffer> = []
      let size = 0
      for await (const chunk of response) {
        if (!Buffer.isBuffer(chunk)) continue
        size += chunk.length
        if (size > maxBytes) throw new KubeError({ reason: "TooLarge", message: `the response of the API server has more than ${maxBytes} bytes` })
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString("utf8")
    },
    catch: (cause) => (cause instanceof KubeError ? cause : lost(cause))
  })

/** A request that is ready to be sent. */
interface Prepared {
  readonly url: URL
  readonly options: https.RequestOptions
  readonly body: Buffer | undefined
  readonly isRead: boolean
  /** Whether it may be sent now; see `MayWrite`. */
  readonly mayWrite: () => boolean
}

const prepare = Effect.fnUntraced(function* (connection: KubeConnection["Service"], request: KubeRequest, pool: http.Agent) {
  const credentials = yield* connection.credentials
  const url = new URL(connection.server.pathname.replace(/\/$/, "") + request.path, connection.server)
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value))
  }
  const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body))
  const headers: http.OutgoingHttpHeaders = {
    ...credentials.headers,
    accept: request.accept ?? "application/json",
    "user-agent": "seatrial",
    ...(body === undefined ? {} : { "content-type": request.contentType ?? "application/json", "content-length": body.length })
  }
  const options = { ...credentials.tls, method: request.method, headers, agent: credentials.proxy ?? pool }
  const prepared: Prepared = { url, options, body, isRead: request.method === "GET", mayWrite: yield* MayWrite }
  return prepared
})

/** Sends a write on its socket, after all waiting for it, if it may still be sent then. */
const sendWrite = (outgoing: http.ClientRequest, { body, mayWrite, url }: Prepared, refuse: () => void): void => {
  const send = () => {
    if (mayWrite()) {
      outgoing.end(body)
      return
    }
    refuse()
    outgoing.destroy()
  }
  const connected = url.protocol === "https:" ? "secureConnect" : "connect"
  outgoing.once("socket", (socket) => {
    if (socket.connecting) socket.once(connected, send)
    else send()
  })
}

/**
 * Sends a request and returns the head of its response. The server may have closed a keep-alive socket while the
 * request was in transit: then it is sent again if `mayRepeat`. Only reads are safe to repeat.
 */
const attempt = (prepared: Prepared, mayRepeat: boolean): Effect.Effect<http.IncomingMessage, KubeError, Scope.Scope> =>
  Effect.gen(function* () {
    const { body, isRead, options, url } = prepared
    let answer: http.IncomingMessage | undefined
    const outgoing = yield* Effect.acquireRelease(
      Effect.sync(() => (url.protocol === "https:" ? https.request(url, options) : http.request(url, options))),
      (sent) => Effect.sync(() => (answer?.readableEnded === true ? undefined : sent.destroy()))
    )
    const outcome = yield* Effect.callback<http.IncomingMessage | "stale", KubeError>((resume) => {
      outgoing.once("response", (response) => {
        answer = response
        response.on("error", () => undefined)
        resume(Effect.succeed(response))
      })
      // The listener stays attached, so that the error of a deliberately destroyed request does not reach the process.
      outgoing.on("error", (cause) => resume(mayRepeat && outgoing.reusedSocket ? Effect.succeed("stale") : Effect.fail(lost(cause))))
      if (isRead) outgoing.end(body)
      else sendWrite(outgoing, prepared, () => resume(Effect.fail(notSent)))
    })
    return outcome === "stale" ? yield* attempt(prepared, false) : outcome
  })

/** Sockets for requests or watches, until the scope closes. */
const openPool = (secure: boolean, maxSockets: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      // `timeout` closes idle keep-alive sockets before the server does; otherwise a request sent at that moment would
      // be lost.
      const options = { keepAlive: true, keepAliveMsecs: 15_000, maxSockets, maxFreeSockets: maxSockets, timeout: 45_000, scheduling: "lifo" as const }
      return secure ? new https.Agent(options) : new http.Agent(options)
    }),
    (agent) => Effect.sync(() => agent.destroy())
  )

/** Fails for a response with a status of 300 or more. */
const connect = Effect.fnUntraced(function* (connection: KubeConnection["Service"], request: KubeRequest, pool: http.Agent) {
  const prepared = yield* prepare(connection, request, pool)
  const response = yield* attempt(prepared, prepared.isRead)
  const status = response.statusCode ?? 0
  if (status >= 200 && status < 300) return response
  const text = yield* readText(response)
  return yield* fromAnswer(status, text, response.headers["retry-after"], yield* Clock.currentTimeMillis)
})

/**
 * Requests over `node:http` with keep-alive and the connection's credentials. Responses with a status of 300 or more
 * fail with `KubeError`.
 */
export const makeTransport = Effect.fnUntraced(function* (settings: KubeSettings) {
  const connection = yield* KubeConnection
  const secure = connection.server.protocol === "https:"
  const forRequests = yield* openPool(secure, settings.connections)
  const forWatches = yield* openPool(secure, settings.watches)

  const within = (duration: Duration.Input) => {
    const message = `the API server did not answer within ${Duration.format(Duration.fromInputUnsafe(duration))}`
    return Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(new KubeError({ reason: "Retryable", message, statusReason: "Timeout" })) })
  }
  const timed = within(settings.requestTimeout)
  const timedCreate = within(settings.createTimeout)

  // Rotated credentials look like wrong ones, so the call is repeated once with fresh credentials before the error
  // counts.
  const withFreshCredentials = <A, R>(call: Effect.Effect<A, KubeError, R>): Effect.Effect<A, KubeError, R> =>
    Effect.catch(call, (error) => (error.status === 401 ? Effect.andThen(connection.forget, call) : Effect.fail(error)))

  const send = (request: KubeRequest) => {
    const answered = Effect.scoped(Effect.flatMap(connect(connection, request, forRequests), (response) => readText(response, request.maxBytes)))
    // A server-side apply is a patch.
    const mayCreate = request.method === "POST" || request.method === "PATCH"
    return withFreshCredentials(mayCreate ? timedCreate(answered) : timed(answered)).pipe(
      Effect.withSpan("KubeClient.request", { attributes: { method: request.method, path: request.path } })
    )
  }
  const open = (request: KubeRequest) => withFreshCredentials(timed(connect(connection, request, forWatches)))
  const transport: KubeTransport = { send, open }
  return transport
})
