import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { tmpdir } from "node:os"
import { Effect, Layer, Logger } from "effect"
import { KubeClient } from "../src/KubeClient.ts"
import { KubeConnection, type KubeConnectionConfig } from "../src/KubeConnection.ts"
import type { KubeSettings } from "../src/KubeTransport.ts"

/** A request that the server received, with the means to respond to it. */
export interface Exchange {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly response: ServerResponse
  readonly socket: Socket
  readonly isWatch: boolean
}

export type Answer = (exchange: Exchange) => void

/**
 * An API server on loopback that answers requests in order from a script. Requests after the end of the script get no
 * response.
 */
export class ApiServer {
  readonly requests: Array<Exchange> = []
  readonly sockets = new Set<Socket>()
  mostSockets = 0
  address = ""
  readonly script: Array<Answer> = []
  /** Answers requests beyond the script. */
  fallback: Answer | undefined
  private waiting: Array<() => void> = []
  private readonly server: Server

  constructor(make: (listener: Parameters<typeof createServer>[1]) => Server = (listener) => createServer(listener ?? (() => undefined))) {
    this.server = make((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const url = new URL(request.url ?? "/", "http://server")
        const exchange: Exchange = {
          method: request.method ?? "",
          path: url.pathname,
          query: url.searchParams,
          headers: request.headers,
          body: Buffer.concat(chunks).toString("utf8"),
          response,
          socket: request.socket,
          isWatch: url.searchParams.get("watch") === "true"
        }
        const answer = this.script[this.requests.length] ?? this.fallback
        this.requests.push(exchange)
        answer?.(exchange)
        this.changed()
      })
    })
    this.server.on("connection", (socket: Socket) => {
      this.sockets.add(socket)
      this.mostSockets = Math.max(this.mostSockets, this.sockets.size)
      socket.on("error", () => undefined)
      socket.on("close", () => {
        this.sockets.delete(socket)
        this.changed()
      })
    })
  }

  private changed() {
    const woken = this.waiting
    this.waiting = []
    for (const wake of woken) wake()
  }

  /** Waits until the condition holds. */
  until(condition: () => boolean): Effect.Effect<void> {
    return Effect.promise(async () => {
      while (!condition()) await new Promise<void>((resolve) => this.waiting.push(resolve))
    })
  }

  /** The request with this number (from 1), once it has arrived. */
  request(number: number): Effect.Effect<Exchange> {
    return Effect.andThen(
      this.until(() => this.requests.length >= number),
      Effect.suspend(() => Effect.fromNullishOr(this.requests[number - 1])).pipe(Effect.orDie)
    )
  }

  static readonly start = (...script: ReadonlyArray<Answer>) => ApiServer.listening(new ApiServer(), "http", script)

  static readonly listening = (server: ApiServer, scheme: "http" | "https", script: ReadonlyArray<Answer>) =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        server.script.push(...script)
        await new Promise<void>((resolve) => server.server.listen(0, "127.0.0.1", resolve))
        const bound: AddressInfo | string | null = server.server.address()
        if (bound === null || typeof bound === "string") throw new Error("the server has no port")
        server.address = `${scheme}://127.0.0.1:${bound.port}`
        return server
      }),
      (started) =>
        Effect.promise(async () => {
          const closed = new Promise((resolve) => started.server.close(resolve))
          for (const socket of started.sockets) socket.destroy()
          await closed
        })
    )
}

export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  ({ response }) => {
    response.writeHead(status, { "content-type": "application/json", ...headers })
    response.end(JSON.stringify(body))
  }

export const status = (code: number, reason: string, message: string, headers: Record<string, string> = {}): Answer =>
  json(code, { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code }, headers)

export const page = (items: ReadonlyArray<unknown>, resourceVersion: string, token?: string): Answer =>
  json(200, { kind: "List", metadata: { resourceVersion, ...(token === undefined ? {} : { continue: token }) }, items })

export const pod = (name: string, resourceVersion: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", uid: `uid-${name}`, resourceVersion, ...more },
  spec: { containers: [{ name: "main" }] }
})

/** A pod with an invalid specification. */
export const unreadable = (name: string, resourceVersion: string, more: object = {}) => ({ ...pod(name, resourceVersion, more), spec: 1 })

export const line = (type: string, object: unknown) => `${JSON.stringify({ type, object })}\n`
export const added = (name: string, version: string) => line("ADDED", pod(name, version))
export const bookmark = (version: string) => line("BOOKMARK", { kind: "Pod", metadata: { resourceVersion: version } })

/** Opens a watch, sends the lines, and keeps it open. */
export const watching =
  (...lines: ReadonlyArray<string>): Answer =>
  ({ response }) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.flushHeaders()
    for (const each of lines) response.write(each)
  }

/** Opens a watch, sends the lines, and ends it as servers do after `timeoutSeconds`. */
export const watchedUntilEnd =
  (...lines: ReadonlyArray<string>): Answer =>
  (exchange) => {
    watching(...lines)(exchange)
    exchange.response.end()
  }

/** Opens a watch, sends the lines, and then resets the connection. */
export const watchedUntilReset =
  (...lines: ReadonlyArray<string>): Answer =>
  ({ response, socket }) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.write(lines.join(""), () => socket.resetAndDestroy())
  }

export const reset: Answer = ({ socket }) => {
  socket.resetAndDestroy()
}

const kubeconfig = (server: string, user: object, cluster: object) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    contexts: [
      { name: "test", context: { cluster: "test", user: "test", namespace: "apps" } },
      { name: "other", context: { cluster: "test", user: "anonymous" } }
    ],
    clusters: [{ name: "test", cluster: { server, ...cluster } }],
    users: [
      { name: "test", user },
      { name: "anonymous", user: {} }
    ]
  })

/** Short delays for tests that do not depend on their length. */
const quick: Partial<KubeSettings> = { backoff: "5 millis", maxBackoff: "20 millis" }

/** A connection to the server through a kubeconfig file that exists for the lifetime of the layer. */
export const layerConnection = (server: ApiServer, user: object = { token: "secret-token" }, cluster: object = {}, context?: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(`${tmpdir()}/kube-test-`)),
        (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
      )
      const path = `${directory}/config`
      yield* Effect.promise(() => writeFile(path, kubeconfig(server.address, user, cluster)))
      const config: KubeConnectionConfig = { kubeconfig: path, ...(context === undefined ? {} : { context }) }
      return KubeConnection.layer(config)
    })
  )

export const layerClient = (server: ApiServer, settings: Partial<KubeSettings> = {}) =>
  KubeClient.layerWith({ ...quick, ...settings }).pipe(Layer.provide(layerConnection(server)), Layer.orDie)

/** Runs the test against a scripted server. */
export const against = <A, E, R>(
  script: ReadonlyArray<Answer>,
  test: (server: ApiServer) => Effect.Effect<A, E, R | KubeClient>,
  settings: Partial<KubeSettings> = {}
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* ApiServer.start(...script)
      return yield* test(server).pipe(Effect.provide(layerClient(server, settings)), Effect.provide(Logger.layer([])))
    })
  )
