import { isAscii } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { chunkGuardOf, tooManySmallChunks } from "@seatrial/http"
import { Effect } from "effect"
import type { BodyShare } from "./BodyBudget.ts"
import { bodyTooLarge, clientClosed, invalidBody, type Refusal, unsupportedMediaType } from "./refusals.ts"

/** Whether a content type is JSON in UTF-8. */
const isJson = (contentType: string): boolean => {
  if (contentType === "application/json") return true
  const [type, ...parameters] = contentType
    .toLowerCase()
    .split(";")
    .map((part) => part.trim())
  const charset = parameters.find((parameter) => parameter.startsWith("charset="))
  return type === "application/json" && (charset === undefined || /^charset="?utf-?8"?$/.test(charset))
}

const smallChunks = invalidBody(tooManySmallChunks)
const late = invalidBody("The body did not arrive in time.")
const tooSlow = invalidBody("The body arrived too slowly.")

/**
 * Whether strings of a body may take two bytes per character: a single character beyond Latin-1, literal or escaped, is
 * enough.
 */
const isWide = (body: Buffer) => !isAscii(body) || body.includes("\\u")

/**
 * Reads from the connection once per turn of the event loop. Otherwise libuv reads up to 32 times from one connection
 * before it serves the next one. This pauses the socket and not the request, so the data of one read is emitted at
 * once. A paused request would keep an object for each chunk of a chunked body, which costs hundreds of times the size
 * of a one-byte chunk.
 */
export const paceReads = (request: IncomingMessage): void => {
  const { socket } = request
  let isPaused = false
  request.on("data", () => {
    if (isPaused) return
    isPaused = true
    socket.pause()
    setImmediate(() => {
      isPaused = false
      socket.resume()
    })
  })
}

/** Bytes charged per chunk at least, including its object, after the first few chunks. */
const [chunkCost, fewChunks] = [512, 64]

/** Largest body that is read without pauses, in bytes. */
const shortBody = 64 * 1024

export interface BodyLimits {
  /** Bytes. */
  readonly maxBodyBytes: number
  /** Milliseconds. */
  readonly bodyTimeoutMillis: number
  /** Bytes a second. */
  readonly bodyBytesPerSecond: number
}

/** Milliseconds over which the rate is averaged. */
const windowMillis = 5_000

/** Reads a JSON body within the limits. `share` reserves its bytes once, or twice if its strings may be wide. */
export const readBody = (
  request: IncomingMessage,
  { bodyBytesPerSecond, bodyTimeoutMillis, maxBodyBytes }: BodyLimits,
  share: BodyShare
): Effect.Effect<Buffer, Refusal> => {
  const { "content-encoding": encoding, "content-type": type = "", "transfer-encoding": coding = "chunked" } = request.headers
  if (!isJson(type)) return Effect.fail(unsupportedMediaType("Send the body as application/json, in UTF-8.", "content-type"))
  if (encoding !== undefined) {
    return Effect.fail(unsupportedMediaType("Compressed bodies are not supported. Send the body without a Content-Encoding.", "content-encoding"))
  }
  if (coding.toLowerCase() !== "chunked") return Effect.fail(unsupportedMediaType("The only supported Transfer-Encoding is chunked.", "transfer-encoding"))
  const tooLarge = Effect.suspend(() => bodyTooLarge(`The body may have at most ${maxBodyBytes} bytes.`))
  if (Number(request.headers["content-length"] ?? 0) > maxBodyBytes) return tooLarge
  return Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    let timer: NodeJS.Timeout | undefined
    const settle = (result: Effect.Effect<Buffer, Refusal>) => {
      clearTimeout(timer)
      request.off("data", onData).off("end", onEnd).off("close", onClose)
      resume(result)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > maxBodyBytes) settle(tooLarge)
      else {
        const full = share.take(chunks.length < fewChunks ? chunk.length : Math.max(chunk.length, chunkCost))
        if (full === null) chunks.push(chunk)
        else settle(Effect.fail(full))
      }
    }
    const onEnd = () => {
      const [first] = chunks
      const body = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
      const full = isWide(body) ? share.take(length) : null
      settle(full === null ? Effect.succeed(body) : Effect.fail(full))
    }
    const onClose = () => settle(Effect.fail(clientClosed))
    let waitedMillis = 0
    let windowStart = 0
    const awaitWindow = () => {
      const millis = Math.min(windowMillis, bodyTimeoutMillis - waitedMillis)
      timer = setTimeout(() => {
        waitedMillis += millis
        if (waitedMillis >= bodyTimeoutMillis) return settle(Effect.fail(late))
        if ((length - windowStart) * 1_000 < bodyBytesPerSecond * millis) return settle(Effect.fail(tooSlow))
        windowStart = length
        awaitWindow()
      }, millis)
    }
    awaitWindow()
    if (request.destroyed && !request.complete) return onClose()
    const guard = chunkGuardOf(request)
    if (guard?.isTripped === true) return settle(Effect.fail(smallChunks))
    guard?.onTrip(() => settle(Effect.fail(smallChunks)))
    if (!(Number(request.headers["content-length"]) <= shortBody)) paceReads(request)
    request.on("data", onData).on("end", onEnd).on("close", onClose)
    return Effect.sync(onClose)
  })
}
