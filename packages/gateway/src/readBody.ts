import { isAscii, isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import type { BodyShare } from "./BodyBudget.ts"
import { bodyTooLarge, clientClosed, invalidBody, type Refusal, unavailable, unsupportedMediaType } from "./refusals.ts"
import { largeBody } from "./vocabulary/LargeBodies.ts"

/** Whether a type says JSON, and no other characters than JSON's own. */
const isJson = (given: string): boolean => {
  if (given === "application/json") return true
  const [type, ...parameters] = given
    .toLowerCase()
    .split(";")
    .map((part) => part.trim())
  const charset = parameters.find((parameter) => parameter.startsWith("charset="))
  return type === "application/json" && (charset === undefined || /^charset="?utf-?8"?$/.test(charset))
}

/** Whether texts of a body may take two bytes for each of its own: one character beyond Latin-1, written out or escaped, is enough. */
const isWide = (body: Buffer, ascii: boolean) => !ascii || body.includes("\\u")

/**
 * The text of a JSON body of at most `limit` bytes, for which `share` pays once, or twice where its texts may be wide, received within `timeout` milliseconds; a large one's
 * bytes, unchecked.
 */
export const readBody = (request: IncomingMessage, limit: number, timeout: number, share: BodyShare): Effect.Effect<string | Buffer, Refusal> => {
  const { "content-encoding": encoding, "content-type": type = "", "transfer-encoding": coding = "chunked" } = request.headers
  if (!isJson(type)) return Effect.fail(unsupportedMediaType("Send the body as application/json, in UTF-8.", "content-type"))
  if (encoding !== undefined) {
    return Effect.fail(unsupportedMediaType("Compressed bodies are not taken. Send the body without a Content-Encoding.", "content-encoding"))
  }
  if (coding.toLowerCase() !== "chunked")
    return Effect.fail(unsupportedMediaType("Only chunked bodies are taken, without another coding.", "transfer-encoding"))
  const tooLarge = Effect.suspend(() => bodyTooLarge(`The body may have at most ${limit} bytes.`))
  if (Number(request.headers["content-length"] ?? 0) > limit) return tooLarge
  return Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    const settle = (result: Effect.Effect<string | Buffer, Refusal>) => {
      clearTimeout(timer)
      request.off("data", onData).off("end", onEnd).off("close", onClose)
      resume(result)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > limit) settle(tooLarge)
      else if (!share.take(chunk.length)) settle(Effect.fail(unavailable))
      else chunks.push(chunk)
    }
    const onEnd = () => {
      const [first] = chunks
      const body = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
      const ascii = isAscii(body)
      if (isWide(body, ascii) && !share.take(length)) return settle(Effect.fail(unavailable))
      if (length > largeBody) return settle(Effect.succeed(body))
      // The same text as by UTF-8, for less.
      if (ascii) return settle(Effect.succeed(body.toString("latin1")))
      settle(isUtf8(body) ? Effect.succeed(body.toString("utf8")) : Effect.fail(invalidBody("The body is not valid UTF-8.")))
    }
    const onClose = () => settle(Effect.fail(clientClosed))
    const timer = setTimeout(() => settle(Effect.fail(invalidBody("The body did not arrive in time."))), timeout)
    if (request.destroyed && !request.complete) return onClose()
    request.on("data", onData).on("end", onEnd).on("close", onClose)
    return Effect.sync(onClose)
  })
}
