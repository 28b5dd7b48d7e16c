import { createHash, randomBytes } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Commit, type RepositoryFile } from "@seatrial/domain"
import { Effect, type Scope } from "effect"

export const token = "hf_fileServerToken"
export const repo = "test/files"
export const commit = Commit.make("0123456789abcdef0123456789abcdef01234567")

/** One request. `signed`: whether it went to the storage with a signed address. */
export interface FileRequest {
  readonly number: number
  readonly signed: boolean
  readonly file: string
  readonly range: string
  readonly authorization: string | null
}

/** A fault: a status, a body that ends or stalls after this many bytes, or other headers. */
export type FileFault =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly cut: number }
  | { readonly stop: number }
  | { readonly contentRange: string }
  | { readonly whole: true }

export interface FileServer {
  readonly address: string
  readonly files: ReadonlyArray<RepositoryFile>
  readonly content: (path: string) => Buffer
  readonly requests: ReadonlyArray<FileRequest>
  /** Bytes of files that were sent. */
  readonly sent: () => number
  /** Called with the number of bytes that were sent; true closes every connection. */
  onSent: (bytes: number) => boolean
  fault: (request: FileRequest) => FileFault | undefined
  /** How many requests a signed address accepts before it expires. */
  uses: number
}

const pieceBytes = 4 * 1024

const listening = (server: Server) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const address = server.address()
      return `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )

/**
 * A hub with two weight files and a small one, with random bytes. It redirects clients with its token to a storage of
 * another origin, with addresses that expire.
 */
export const makeFileServer: Effect.Effect<FileServer, never, Scope.Scope> = Effect.gen(function* () {
  const contents = new Map([
    ["config.json", randomBytes(700)],
    ["model-00001-of-00002.safetensors", randomBytes(900_001)],
    ["model-00002-of-00002.safetensors", randomBytes(611_000)]
  ])
  const files = [...contents].map(([path, bytes]): RepositoryFile => {
    const blob = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex")
    return { path, size: bytes.length, blob_id: blob, sha256: path === "config.json" ? null : createHash("sha256").update(bytes).digest("hex") }
  })
  const requests: Array<FileRequest> = []
  const used = new Map<string, number>()
  let sent = 0
  let signatures = 0

  const sendFile = async (response: ServerResponse, bytes: Buffer, range: string, fault: FileFault | undefined) => {
    const match = fault !== undefined && "whole" in fault ? null : /^bytes=(\d+)-(\d+)$/.exec(range)
    const [from, to] = match === null ? [0, bytes.length - 1] : [Number(match[1]), Math.min(Number(match[2]), bytes.length - 1)]
    const stated = fault !== undefined && "contentRange" in fault ? fault.contentRange : `bytes ${from}-${to}/${bytes.length}`
    response.writeHead(match === null ? 200 : 206, { "content-length": to - from + 1, ...(match === null ? {} : { "content-range": stated }) })
    const limit = fault === undefined ? Number.POSITIVE_INFINITY : "cut" in fault ? fault.cut : "stop" in fault ? fault.stop : Number.POSITIVE_INFINITY
    for (let at = from; at <= to && at - from < limit; at += pieceBytes) {
      if (response.destroyed) return
      const piece = bytes.subarray(at, Math.min(at + pieceBytes, to + 1))
      sent += piece.length
      if (self.onSent(sent)) {
        for (const server of [hub, storage]) server.closeAllConnections()
        return
      }
      await new Promise((resume) => response.write(piece, resume))
    }
    if (fault !== undefined && "cut" in fault) response.destroy()
    else if (fault === undefined || !("stop" in fault)) response.end()
  }

  const answer = async (request: IncomingMessage, response: ServerResponse, signed: boolean) => {
    const url = new URL(request.url ?? "/", "http://hub.invalid")
    const file = decodeURIComponent(url.pathname.split("/").at(-1) ?? "")
    const authorization = request.headers.authorization ?? null
    const asked = { number: requests.length + 1, signed, file, range: request.headers.range ?? "", authorization }
    requests.push(asked)
    const fault = self.fault(asked)
    if (fault !== undefined && "status" in fault) return response.writeHead(fault.status, { "content-length": 0, ...fault.headers }).end()
    const bytes = contents.get(file)
    if (bytes === undefined) return response.writeHead(404, { "content-length": 0 }).end()
    if (!signed) {
      if (authorization !== `Bearer ${token}`) return response.writeHead(401, { "content-length": 0 }).end()
      return response.writeHead(302, { location: `${storageAddress}/${encodeURIComponent(file)}?signature=${++signatures}`, "content-length": 0 }).end()
    }
    const times = (used.get(url.search) ?? 0) + 1
    used.set(url.search, times)
    if (times > self.uses) return response.writeHead(403, { "content-length": 0 }).end()
    return sendFile(response, bytes, asked.range, fault)
  }
  const make = (signed: boolean) => createServer((request, response) => void answer(request, response, signed).catch(() => response.destroy()))
  const hub = make(false)
  const storage = make(true)
  const address = yield* listening(hub)
  const storageAddress = yield* listening(storage)
  const self: FileServer = {
    address,
    files,
    content: (path) => contents.get(path) ?? Buffer.alloc(0),
    requests,
    sent: () => sent,
    onSent: () => false,
    fault: () => undefined,
    uses: Number.POSITIVE_INFINITY
  }
  return self
})
