import { ByteSize, Effect, Schema } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { inputProblem } from "./inputProblem.ts"
import { bodyTooLarge, encodedBody, invalidBody, unsupportedMediaType } from "./publicErrors.ts"
import { repeatedMember } from "./repeatedMember.ts"

/** Levels of nesting that a body may have: far more than any operation needs, far less than a parser's stack. */
const maxDepth = 32

const tooDeep = (text: string): boolean => {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (inString) {
      if (code === 92) index++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 91 || code === 123) {
      if (++depth > maxDepth) return true
    } else if (code === 93 || code === 125) depth--
  }
  return false
}

const isJson = (contentType: string): boolean => {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";")
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith("charset="))
  return type.trim() === "application/json" && (charset === undefined || /^charset="?utf-8"?$/.test(charset))
}

// Bytes that are no text are refused, not replaced.
const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The text of the body; empty where there is none. */
const readText = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, maxBytes: number) {
  const length = request.headers["content-length"]
  const hasBody = request.headers["transfer-encoding"] !== undefined || (length !== undefined && Number(length) > 0)
  if (!hasBody) return ""
  if (!isJson(request.headers["content-type"] ?? "")) return yield* unsupportedMediaType
  if ((request.headers["content-encoding"] ?? "identity") !== "identity") return yield* encodedBody
  if (Number(length ?? 0) > maxBytes) return yield* bodyTooLarge(maxBytes)
  const bytes = yield* request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.catch(
      Effect.fnUntraced(function* ({ reason }) {
        if (reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge") return yield* bodyTooLarge(maxBytes)
        return yield* invalidBody(null, "The body could not be read.")
      })
    )
  )
  return yield* Effect.try({ try: () => utf8.decode(bytes), catch: () => "not UTF-8" }).pipe(Effect.catch(() => invalidBody(null, "The body is not UTF-8.")))
})

/** Characters of a member's path that a refusal repeats. */
const longestName = 200

/** The body as JSON; `undefined` where there is none. */
export const readJson = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, maxBytes: number) {
  const text = yield* readText(request, maxBytes)
  if (text === "") return undefined
  if (tooDeep(text)) return yield* invalidBody(null, `The body is nested more than ${maxDepth} levels deep.`)
  const parse = (): unknown => JSON.parse(text)
  const body = yield* Effect.try({ try: parse, catch: () => "not JSON" }).pipe(Effect.catch(() => invalidBody(null, "The body is not valid JSON.")))
  const repeated = repeatedMember(text)?.slice(0, longestName)
  if (repeated !== undefined) return yield* invalidBody(repeated, `${repeated === "" ? "A member without a name" : repeated} is given more than once.`)
  return body
})

/** Decodes a body strictly: a member that the schema does not know is refused and named. */
export const decodeBody = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = Schema.decodeUnknownEffect(schema, { onExcessProperty: "error" })
  return (body: unknown) =>
    Effect.catch(decode(body), ({ issue }) => {
      const { message, param: path } = inputProblem(issue)
      const param = path?.slice(0, longestName) ?? null
      return invalidBody(param, param === null ? `The body ${message}.` : `${param} ${message}.`)
    })
}
