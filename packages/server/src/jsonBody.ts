import { ByteSize, Effect, Schema } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { inputProblem } from "./inputProblem.ts"
import { bodyTooLarge, encodedBody, invalidBody, unsupportedMediaType } from "./publicErrors.ts"
import { repeatedMember } from "./repeatedMember.ts"

/** Maximum nesting of a body: far more than any operation needs, and far less than would exhaust the stack of the parser. */
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

// Invalid UTF-8 is refused instead of replaced.
const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The text of the body. Empty if there is no body. */
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

/** Maximum characters of a member's path in an error. */
const maxPathLength = 200

/** The body as JSON. `undefined` if there is no body. */
export const readJson = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, maxBytes: number) {
  const text = yield* readText(request, maxBytes)
  if (text === "") return undefined
  if (tooDeep(text)) return yield* invalidBody(null, `The body is nested more than ${maxDepth} levels deep.`)
  const parse = (): unknown => JSON.parse(text)
  const body = yield* Effect.try({ try: parse, catch: () => "not JSON" }).pipe(Effect.catch(() => invalidBody(null, "The body is not valid JSON.")))
  const repeated = repeatedMember(text)?.slice(0, maxPathLength)
  if (repeated !== undefined) return yield* invalidBody(repeated, `${repeated === "" ? "A member without a name" : repeated} is given more than once.`)
  return body
})

/** Decodes a body strictly. An unknown member is refused and reported by name. */
export const decodeBody = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = Schema.decodeUnknownEffect(schema, { onExcessProperty: "error" })
  return (body: unknown) =>
    Effect.catch(decode(body), ({ issue }) => {
      const { message, param: path } = inputProblem(issue)
      const param = path?.slice(0, maxPathLength) ?? null
      return invalidBody(param, param === null ? `The body ${message}.` : `${param} ${message}.`)
    })
}
