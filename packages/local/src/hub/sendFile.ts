import type { IncomingMessage, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { buffer } from "node:stream/consumers"
import { pipeline } from "node:stream/promises"
import { openUnchanged, readHandle } from "./DiskFile.ts"
import type { HubFault } from "./HubFault.ts"
import { readContent, type SampleFile } from "./SampleRepository.ts"

/**
 * The first and last byte of a single range; null if there is no range or several, which are answered with the complete
 * file.
 */
const parseRange = (header: string | undefined, size: number): readonly [number, number] | "unsatisfiable" | null => {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "")
  if (match === null) return null
  const [, first = "", last = ""] = match
  if (first === "" && last === "") return null
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first)
  const to = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1)
  return from > to ? "unsatisfiable" : [from, to]
}

type Pieces = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

async function* spoil(pieces: Pieces, from: number, offset: number): AsyncGenerator<Uint8Array> {
  let at = from
  for await (const piece of pieces) {
    if (offset < at || offset >= at + piece.length) yield piece
    else {
      const copy = Uint8Array.from(piece)
      copy[offset - at] = (copy[offset - at] ?? 0) ^ 0xff
      yield copy
    }
    at += piece.length
  }
}

async function* first(pieces: Pieces, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes
  for await (const piece of pieces) {
    if (left <= 0) return
    yield piece.subarray(0, left)
    left -= piece.length
  }
}

/** Sends a body byte by byte with a pause of `every` milliseconds, until the client disconnects. */
export const sendSlowly = (response: ServerResponse, body: Uint8Array, every: number): void => {
  let at = 0
  const timer = setInterval(() => {
    if (response.destroyed || at === body.length) {
      clearInterval(timer)
      response.end()
    } else response.write(body.subarray(at, ++at))
  }, every)
}

interface FileAnswer {
  readonly commit: string
  readonly file: SampleFile
  readonly fault: HubFault | undefined
}

const headersOf = ({ commit, file }: FileAnswer): Record<string, string | number> => {
  const etag = `"${file.lfs?.sha256 ?? file.blobId}"`
  return {
    "content-type": file.path.endsWith(".json") ? "application/json; charset=utf-8" : "application/octet-stream",
    "accept-ranges": "bytes",
    etag,
    "x-repo-commit": commit,
    ...(file.lfs === null ? {} : { "x-linked-etag": etag, "x-linked-size": file.size })
  }
}

/** The bytes that a fault lets through. */
const faultyContent = (content: Pieces, from: number, fault: HubFault | undefined): Pieces => {
  if (fault?.kind === "cut" || fault?.kind === "stall") return first(content, fault.after)
  return fault?.kind === "corrupt" ? spoil(content, from, fault.offset) : content
}

/** Sends `content`, the bytes from `from` on. */
const sendContent = async (response: ServerResponse, content: Pieces, from: number, fault: HubFault | undefined): Promise<void> => {
  if (fault?.kind === "drip") return sendSlowly(response, await buffer(Readable.from(content)), fault.every)
  const sent = faultyContent(content, from, fault)
  if (fault?.kind !== "cut" && fault?.kind !== "stall") return pipeline(Readable.from(sent), response)
  response.flushHeaders()
  for await (const piece of sent) await new Promise((resume) => response.write(piece, resume))
  if (fault.kind === "cut") response.destroy()
}

/** The bytes from `from` to before `end`. Null if the file was changed since its repository was read. */
const openContent = async (file: SampleFile, from: number, end: number): Promise<Pieces | null> => {
  if (file.disk === undefined) return readContent(file, from, end)
  const handle = await openUnchanged(file.disk)
  return handle === null ? null : readHandle(handle, from, end)
}

/** Sends a file or the requested range with the headers that the hub's clients read. */
export const sendFile = async (request: IncomingMessage, response: ServerResponse, options: FileAnswer): Promise<void> => {
  const { fault, file } = options
  const headers = headersOf(options)
  const range = fault?.kind === "whole" ? null : parseRange(request.headers.range, file.size)
  if (range === "unsatisfiable") {
    response.writeHead(416, { ...headers, "content-range": `bytes */${file.size}` }).end()
    return
  }
  const shift = fault?.kind === "shift" ? fault.by : 0
  const [first, last] = range ?? [0, file.size - 1]
  const from = first + shift
  const to = Math.min(last + shift, file.size - 1)
  const content = request.method === "HEAD" ? [] : await openContent(file, from, to + 1)
  if (content === null) {
    response.writeHead(500, { "x-error-message": `${file.path} was changed after Seatrial started. Restart Seatrial.` }).end()
    return
  }
  response.writeHead(range === null ? 200 : 206, {
    ...headers,
    "content-length": Math.max(0, to - from + 1),
    ...(range === null ? {} : { "content-range": `bytes ${from}-${to}/${file.size}` })
  })
  if (request.method === "HEAD") response.end()
  else await sendContent(response, content, from, fault)
}
