import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Cause, Effect, FiberSet, Stream } from "effect"
import type { Answer, Call, Handler } from "./Http.ts"
import { at } from "./Json.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { fromProtobuf } from "./protobuf.ts"

const mostBytes = 3 * 1_024 * 1_024

const readBody = (request: IncomingMessage): Effect.Effect<Buffer, KubeStatus> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    request.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size <= mostBytes) chunks.push(chunk)
    })
    request.on("end", () =>
      resume(
        size > mostBytes
          ? Effect.fail(new KubeStatus({ code: 413, reason: "RequestEntityTooLarge", message: `Request entity too large: limit is ${mostBytes}` }))
          : Effect.succeed(Buffer.concat(chunks))
      )
    )
    request.on("error", () => resume(Effect.fail(KubeStatus.badRequest("the request's body ended early"))))
  })

const drained = (response: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const listener = () => resume(Effect.void)
    response.once("drain", listener)
    return Effect.sync(() => response.off("drain", listener))
  })

const send = Effect.fnUntraced(function* (response: ServerResponse, answer: Answer) {
  if ("stream" in answer) {
    response.writeHead(answer.code, { "content-type": answer.mediaType, "cache-control": "no-cache, private" })
    response.flushHeaders()
    yield* Stream.runForEach(answer.stream, (chunk) => (response.write(chunk) ? Effect.void : drained(response)))
    response.end()
    return
  }
  const text = "text" in answer
  const body = text ? answer.text : JSON.stringify(answer.json)
  const retryAfter = text ? undefined : at(answer.json, "details", "retryAfterSeconds")
  response.writeHead(answer.code, {
    ...(answer.code >= 400 && typeof retryAfter === "number" ? { "retry-after": String(retryAfter) } : {}),
    "content-type": text ? "text/plain; charset=utf-8" : "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-cache, private"
  })
  response.end(body)
})

const protobuf = "application/vnd.kubernetes.protobuf"

const textOf = (mediaType: string, bytes: Buffer): Effect.Effect<string, KubeStatus> => {
  if (mediaType !== protobuf || bytes.length === 0) return Effect.succeed(bytes.toString("utf8"))
  const object = fromProtobuf(bytes)
  const message = "the body of the request was in an unknown format - this server takes JSON and YAML, and protobuf for a few kinds only"
  return object === undefined ? Effect.fail(new KubeStatus({ code: 415, reason: "UnsupportedMediaType", message })) : Effect.succeed(JSON.stringify(object))
}

const callOf = Effect.fnUntraced(function* (request: IncomingMessage, authorize: (path: string, token: string) => string | undefined) {
  const url = new URL(request.url ?? "/", "http://localhost")
  const path = authorize(url.pathname, /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "")
  const bytes = yield* readBody(request)
  if (path === undefined) return yield* new KubeStatus({ code: 401, reason: "Unauthorized", message: "Unauthorized" })
  const segments = yield* Effect.try({
    try: () =>
      path
        .split("/")
        .filter((part) => part !== "")
        .map(decodeURIComponent),
    catch: () => KubeStatus.badRequest("the request's path is not well formed")
  })
  const mediaType = (request.headers["content-type"] ?? "application/json").split(";")[0]?.trim() ?? ""
  const body = yield* textOf(mediaType, bytes)
  const call: Call = {
    method: request.method ?? "GET",
    path: segments,
    prefix: url.pathname.slice(0, url.pathname.length - path.length),
    query: url.searchParams,
    accept: request.headers.accept ?? "",
    mediaType: mediaType === protobuf ? "application/json" : mediaType,
    userAgent: request.headers["user-agent"] ?? "",
    body
  }
  return call
})

const failed = (status: KubeStatus): Answer => ({ code: status.code, json: status.body })

/** Serves a handler on a loopback port until its scope closes, which ends every open watch. Returns the port. */
export const serve = Effect.fnUntraced(function* (handler: Handler, authorize: (path: string, token: string) => string | undefined, port: number) {
  const run = yield* FiberSet.makeRuntime()
  const respond = (request: IncomingMessage, response: ServerResponse) =>
    callOf(request, authorize).pipe(
      Effect.flatMap(handler),
      Effect.catch((status) => Effect.succeed(failed(status))),
      Effect.catchDefect((defect) =>
        Effect.logError("The local cluster could not answer", defect).pipe(
          Effect.as(failed(new KubeStatus({ code: 500, reason: "InternalError", message: `Internal error occurred: ${String(defect)}` })))
        )
      ),
      Effect.flatMap((answer) => send(response, answer)),
      Effect.catchCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("The local cluster failed to send an answer", cause))),
      Effect.ensuring(Effect.sync(() => response.writableEnded || response.destroy()))
    )
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server, Error>((resume) => {
      const server = createServer((request, response) => {
        const fiber = run(respond(request, response))
        response.on("close", () => fiber.interruptUnsafe())
      })
      // Longer than clients keep idle connections, so that they rarely write to a connection that is being closed.
      server.keepAliveTimeout = 120_000
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  const address = server.address()
  return address !== null && typeof address === "object" ? address.port : port
})
