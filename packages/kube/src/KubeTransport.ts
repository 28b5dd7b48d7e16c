import * as http from "node:http"
import * as https from "node:https"
import { Clock, Context, Duration, Effect, Predicate, type Scope } from "effect"
import { KubeConnection } from "./KubeConnection.ts"
import { fromAnswer, KubeError } from "./KubeError.ts"

export interface KubeSettings {
  /** From sending a request to the last byte of its answer; of a watch, to its first. */
  readonly requestTimeout: Duration.Input
  /** Objects a page of a list: all of a page, as it came, as text and decoded, is in memory at once, for each kind that is read. */
  readonly pageSize: number
  /** Sockets at most for requests; more requests than these wait for one, within their timeout. */
  readonly connections: number
  /** Sockets at most for watches: more watches than these never start. */
  readonly watches: number
  /** A watch on which nothing came for this long is opened again. Servers send bookmarks each minute. */
  readonly watchIdle: Duration.Input
  /** A watch starts over with a full list about this often, give or take a fifth. */
  readonly relistEvery: Duration.Input
  /** Delay after the first failure of a watch; doubles for each that follows. */
  readonly backoff: Duration.Input
  readonly maxBackoff: Duration.Input
}

export const defaultSettings: KubeSettings = {
  requestTimeout: "30 seconds",
  pageSize: 100,
  connections: 32,
  watches: 64,
  watchIdle: "3 minutes",
  relistEvery: "30 minutes",
  backoff: "500 millis",
  maxBackoff: "30 seconds"
}

/**
 * Whether a fibre may still write; asked the moment before the first byte of a write goes out, after whatever it had to wait for (credentials, a socket, a connection).
 * Always, unless somebody says otherwise.
 */
export const MayWrite = Context.Reference<() => boolean>("seatrial/MayWrite", { defaultValue: () => () => true })

export const notSent = new KubeError({ reason: "Retryable", message: "not sent: the lease has run out" })

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  readonly contentType?: string
  readonly accept?: string
}

export interface KubeTransport {
  /** The body of a successful answer. */
  readonly send: (request: KubeRequest) => Effect.Effect<string, KubeError>
  /** A successful answer whose body is still to be read; closing the scope closes its socket at once. */
  readonly open: (request: KubeRequest) => Effect.Effect<http.IncomingMessage, KubeError, Scope.Scope>
}

/** More than any page of 100 objects; an answer beyond it is cut off rather than kept in memory. */
const maxBodyBytes = 256 * 1024 * 1024

const lost = (cause: unknown): KubeError => {
  const code = Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : undefined
  return new KubeError({
    reason: "Retryable",
    message: `the connection to the API server failed: ${code ?? (cause instanceof Error ? cause.message : "unknown")}`
  })
}

const readText = (response: http.IncomingMessage): Effect.Effect<string, KubeError> =>
  Effect.tryPromise({
    try: async () => {
      const chunks: Array<Buffer> = []
      let size = 0
      for await (const chunk of response) {
        if (!Buffer.isBuffer(chunk)) continue
        size += chunk.length
        if (size > maxBodyBytes) throw new Error("the answer is too large")
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString("utf8")
    },
    catch: lost
  })

/** Requests over `node:http` on kept connections, with the connection's credentials; answers of 300 and more are `KubeError`s. */
export const makeTransport = Effect.fnUntraced(function* (settings: KubeSettings) {
  const connection = yield* KubeConnection
  const secure = connection.server.protocol === "https:"
  const agentOf = (maxSockets: number) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        // `timeout` ends idle kept sockets before a server does, which would lose the request then sent on one.
        const options = { keepAlive: true, keepAliveMsecs: 15_000, maxSockets, maxFreeSockets: maxSockets, timeout: 45_000, scheduling: "lifo" as const }
        return secure ? new https.Agent(options) : new http.Agent(options)
      }),
      (agent) => Effect.sync(() => agent.destroy())
    )
  const forRequests = yield* agentOf(settings.connections)
  const forWatches = yield* agentOf(settings.watches)
  const base = connection.server.pathname.replace(/\/$/, "")

  const connect = Effect.fnUntraced(function* (request: KubeRequest, pool: http.Agent) {
    const credentials = yield* connection.credentials
    const mayWrite = yield* MayWrite
    const url = new URL(base + request.path, connection.server)
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

    // A kept socket may have been closed by the server while the request was on its way: reading is then safe to repeat.
    const attempt = (mayRepeat: boolean): Effect.Effect<http.IncomingMessage, KubeError, Scope.Scope> =>
      Effect.gen(function* () {
        let answer: http.IncomingMessage | undefined
        const outgoing = yield* Effect.acquireRelease(
          Effect.sync(() => (secure ? https.request(url, options) : http.request(url, options))),
          (sent) => Effect.sync(() => (answer?.readableEnded === true ? undefined : sent.destroy()))
        )
        const outcome = yield* Effect.callback<http.IncomingMessage | "stale", KubeError>((resume) => {
          outgoing.once("response", (response) => {
            answer = response
            response.on("error", () => undefined)
            resume(Effect.succeed(response))
          })
          // Stays attached: the error of a request destroyed on purpose must not reach the process.
          outgoing.on("error", (cause) => resume(mayRepeat && outgoing.reusedSocket ? Effect.succeed("stale") : Effect.fail(lost(cause))))
          if (request.method === "GET") return void outgoing.end(body)
          const go = () => {
            if (mayWrite()) return void outgoing.end(body)
            resume(Effect.fail(notSent))
            outgoing.destroy()
          }
          outgoing.once("socket", (socket) => (socket.connecting ? void socket.once(secure ? "secureConnect" : "connect", go) : go()))
        })
        return outcome === "stale" ? yield* attempt(false) : outcome
      })

    const response = yield* attempt(request.method === "GET")
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    const text = yield* readText(response)
    return yield* fromAnswer(status, text, response.headers["retry-after"], yield* Clock.currentTimeMillis)
  })

  const late = () =>
    Effect.fail(
      new KubeError({
        reason: "Retryable",
        message: `the API server did not answer within ${Duration.format(Duration.fromInputUnsafe(settings.requestTimeout))}`
      })
    )
  const timed = Effect.timeoutOrElse({ duration: settings.requestTimeout, orElse: late })

  // Credentials that were rotated meanwhile look like wrong ones: once with fresh ones, before the answer counts.
  const withFreshCredentials = <A, R>(call: Effect.Effect<A, KubeError, R>): Effect.Effect<A, KubeError, R> =>
    Effect.catch(call, (error) => (error.status === 401 ? Effect.andThen(connection.forget, call) : Effect.fail(error)))

  const send = (request: KubeRequest) =>
    withFreshCredentials(timed(Effect.scoped(Effect.flatMap(connect(request, forRequests), readText)))).pipe(
      Effect.withSpan("KubeClient.request", { attributes: { method: request.method, path: request.path } })
    )
  const open = (request: KubeRequest) => withFreshCredentials(timed(connect(request, forWatches)))
  const transport: KubeTransport = { send, open }
  return transport
})
