import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { bodyTooLarge, invalidBody, type Refusal, unsupportedMediaType } from "./refusals.ts"

/** A JSON body of at most `limit` bytes, received within `timeout` milliseconds. */
export const readJson = (request: IncomingMessage, limit: number, timeout: number): Effect.Effect<unknown, Refusal> => {
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase()
  if (type !== "application/json") return Effect.fail(unsupportedMediaType("Send the body as application/json.", "content-type"))
  if (request.headers["content-encoding"] !== undefined)
    return Effect.fail(unsupportedMediaType("Send the body without a Content-Encoding.", "content-encoding"))
  const tooLarge = bodyTooLarge(`The body may have at most ${limit} bytes.`)
  if (Number(request.headers["content-length"] ?? 0) > limit) return Effect.fail(tooLarge)
  return Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    const settle = (result: Effect.Effect<unknown, Refusal>) => {
      clearTimeout(timer)
      request.off("data", onData).off("end", onEnd).off("error", onError).off("close", onError)
      resume(result)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > limit) {
        request.pause()
        settle(Effect.fail(tooLarge))
      } else chunks.push(chunk)
    }
    const onEnd = () => {
      try {
        settle(Effect.succeed(JSON.parse(Buffer.concat(chunks).toString("utf8"))))
      } catch {
        settle(Effect.fail(invalidBody("The body is not valid JSON.")))
      }
    }
    const onError = () => settle(Effect.fail(invalidBody("The body did not arrive whole.")))
    const timer = setTimeout(onError, timeout)
    request.on("data", onData).on("end", onEnd).on("error", onError).on("close", onError)
    return Effect.sync(() => clearTimeout(timer))
  })
}
