import { open, stat } from "node:fs/promises"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { Data, Effect, type Scope } from "effect"
import { readLog } from "./ContainerLog.ts"
import { podFolder } from "./PodFolder.ts"

export class LogServerError extends Data.TaggedError("LogServerError")<{ readonly message: string; readonly cause: unknown }> {}

/** Certificate and key, PEM. */
export interface LogServerTls {
  readonly cert: string
  readonly key: string
}

interface LogServerOptions {
  readonly state: string
  readonly address: string
  /** A real API server requests logs over TLS. Without it they are served over plain HTTP. */
  readonly tls?: LogServerTls
  /** The uid of the pod with this name on the nodes of this agent. */
  readonly uidOf: (namespace: string, name: string) => string | undefined
  /** Returns false if the container will not log any more. */
  readonly running: (namespace: string, name: string, container: string) => boolean
}

const followEvery = 100

const refuse = (response: ServerResponse, status: number, message: string) => {
  response.writeHead(status, { "content-type": "text/plain" })
  response.end(`${message}\n`)
}

/**
 * Sends all additions to a log until the reader disconnects or the container has ended. If a newer run replaced the
 * file, it is read from its start.
 */
const follow = async (path: string, response: ServerResponse, running: () => boolean, from: number) => {
  let position = from
  let inode = (await stat(path)).ino
  while (!response.destroyed) {
    // Checked before the read, so that everything before the end is sent.
    const alive = running()
    const file = await open(path, "r").catch(() => undefined)
    if (file !== undefined) {
      try {
        const now = await file.stat()
        if (now.ino !== inode || now.size < position) position = 0
        inode = now.ino
        const length = Math.min(now.size - position, 65_536)
        const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position)
        position += bytesRead
        if (bytesRead > 0) {
          if (!response.write(buffer.subarray(0, bytesRead))) await new Promise((resolve) => response.once("drain", resolve).once("close", resolve))
          continue
        }
      } finally {
        await file.close()
      }
    }
    if (!alive) break
    await new Promise((resolve) => setTimeout(resolve, followEvery))
  }
  response.end()
}

/** The parts of a log that a request asks for. */
const logQuery = ({ searchParams: query }: URL) => {
  const tailLines = query.get("tailLines")
  const limit = Number.parseInt(query.get("limitBytes") ?? "", 10)
  return {
    isPrevious: query.get("previous") === "true",
    isFollowing: query.get("follow") === "true",
    tailLines: tailLines === null ? undefined : Number.parseInt(tailLines, 10) || 0,
    limitBytes: Number.isInteger(limit) ? limit : undefined
  }
}

const containerName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

const answerLog = async (options: LogServerOptions, url: URL, response: ServerResponse) => {
  const [, , namespace = "", name = "", container = ""] = url.pathname.split("/").map(decodeURIComponent)
  const uid = options.uidOf(namespace, name)
  if (uid === undefined || !containerName.test(container)) return refuse(response, 404, `pod "${name}" is not on this node`)
  const { isFollowing, isPrevious, limitBytes, tailLines } = logQuery(url)
  const folder = podFolder(options.state, uid)
  const path = isPrevious ? folder.previousLog(container) : folder.log(container)
  const read = await readLog(path, tailLines).catch(() => undefined)
  if (read === undefined) return refuse(response, 400, `container "${container}" in pod "${name}" has no log yet`)
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" })
  response.write(Buffer.from(read.text).subarray(0, limitBytes))
  if (!isFollowing) return response.end()
  response.flushHeaders()
  return follow(path, response, () => options.running(namespace, name, container), read.size)
}

const answer = async (options: LogServerOptions, request: IncomingMessage, response: ServerResponse) => {
  const url = new URL(request.url ?? "/", "http://localhost")
  const [, kind] = url.pathname.split("/")
  if (request.method !== "GET") return refuse(response, 405, "only GET")
  if (kind === "healthz") return refuse(response, 200, "ok")
  return kind === "containerLogs" ? answerLog(options, url, response) : refuse(response, 404, "not found")
}

/**
 * Serves the kubelet's log endpoint, `/containerLogs/NAMESPACE/POD/CONTAINER`, on a free port of a loopback address
 * until the scope closes.
 */
export const serveLogs = Effect.fn("serveLogs")(function* (options: LogServerOptions): Effect.fn.Return<number, LogServerError, Scope.Scope> {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(options, request, response).catch(() => response.destroy())
  }
  const server = options.tls === undefined ? createServer(listener) : createSecureServer({ ...options.tls }, listener)
  const port = yield* Effect.acquireRelease(
    Effect.callback<number, LogServerError>((resume) => {
      server.once("error", (cause) => resume(Effect.fail(new LogServerError({ message: `The log endpoint could not be opened: ${cause.message}`, cause }))))
      server.listen(0, options.address, () => {
        const address = server.address()
        resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : 0))
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  return port
})
