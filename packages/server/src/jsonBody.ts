import { schemaProblem } from "@seatrial/domain"
import { chunkGuardOf, JsonExcess, type JsonLimits, scanJson, tooManySmallChunks } from "@seatrial/http"
import { ByteSize, Effect, Fiber, Schema } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { bodyTooLarge, encodedBody, invalidBody, unsupportedMediaType } from "./publicErrors.ts"
import { repeatedMember } from "./repeatedMember.ts"

/** Far more than any operation needs, and so few that the body is parsed and decoded within milliseconds. */
const jsonLimits: JsonLimits = {
  depth: 32,
  containers: 1_000,
  parts: 5_000,
  members: 1_000,
  // Numbers are cheap to parse, and the schema of each field refuses the wrong ones.
  numbers: null
}

const checkSize = Effect.fnUntraced(function* (bytes: Buffer) {
  const excess = scanJson(bytes, jsonLimits)
  if (!(excess instanceof JsonExcess)) return
  return yield* invalidBody(null, excess.limit === "depth" ? `The body is nested more than ${jsonLimits.depth} levels deep.` : excess.message)
})

const isJson = (contentType: string): boolean => {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";")
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith("charset="))
  return type.trim() === "application/json" && (charset === undefined || /^charset="?utf-8"?$/.test(charset))
}

// Invalid UTF-8 is refused instead of replaced.
const utf8 = new TextDecoder("utf-8", { fatal: true })

const smallChunks = invalidBody(null, tooManySmallChunks)

/** Reads the bytes of a body. A body in too many small chunks is not read to its end. */
const readBytes = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, maxBytes: number) {
  const read = request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.catch(
      Effect.fnUntraced(function* ({ reason }) {
        if (reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge") return yield* bodyTooLarge(maxBytes)
        return yield* invalidBody(null, "The body could not be read.")
      })
    )
  )
  const guard = chunkGuardOf(request.source)
  if (guard === undefined) return yield* read
  if (guard.isTripped) return yield* smallChunks
  const tripped = Effect.callback<void>((resume) => guard.onTrip(() => resume(Effect.void)))
  // Interrupting the reader closes the connection, so it is left to the guard, which closes the connection after the
  // answer.
  const reader = yield* Effect.forkDetach(read)
  return yield* Effect.raceFirst(
    Fiber.join(reader),
    Effect.flatMap(tripped, () => smallChunks)
  ).pipe(Effect.onInterrupt(() => Fiber.interrupt(reader)))
})

/** Why a body with these headers is refused before it is read. */
const checkHeaders = Effect.fnUntraced(function* ({ headers }: HttpServerRequest.HttpServerRequest, maxBytes: number) {
  if (!isJson(headers["content-type"] ?? "")) return yield* unsupportedMediaType
  if ((headers["content-encoding"] ?? "identity") !== "identity") return yield* encodedBody
  if (Number(headers["content-length"] ?? 0) > maxBytes) return yield* bodyTooLarge(maxBytes)
})

/** The text of the body within the limits. Empty if there is no body. */
const readText = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, maxBytes: number) {
  const length = request.headers["content-length"]
  const hasBody = request.headers["transfer-encoding"] !== undefined || (length !== undefined && Number(length) > 0)
  if (!hasBody) return ""
  yield* checkHeaders(request, maxBytes)
  const bytes = Buffer.from(yield* readBytes(request, maxBytes))
  yield* checkSize(bytes)
  return yield* Effect.try({ try: () => utf8.decode(bytes), catch: () => "not UTF-8" }).pipe(Effect.catch(() => invalidBody(null, "The body is not UTF-8.")))
})

/** Maximum characters of a member's path in an error. */
const maxPathLength = 200

/** The body as JSON. `undefined` if there is no body. */
export const readJson = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, maxBytes: number) {
  const text = yield* readText(request, maxBytes)
  if (text === "") return undefined
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
      const { message, param: path } = schemaProblem(issue)
      const param = path?.slice(0, maxPathLength) ?? null
      return invalidBody(param, param === null ? `The body ${message}.` : `${param} ${message}.`)
    })
}
