import { Agent, type IncomingHttpHeaders, request } from "node:http"
import { optionalNullable } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { assertConforms } from "../../packages/server/test/conformance.ts"

/** When the caller cuts its connection: after sending the request, some milliseconds later, or after the response headers. */
export type Cut = "sent" | "head" | { readonly afterMillis: number }

export interface Ask {
  readonly method: string
  readonly path: string
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly cut?: Cut
}

export interface Answer {
  readonly _tag: "Answer"
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** An incomplete response. `status` is null if no headers arrived. */
export interface Torn {
  readonly _tag: "Torn"
  readonly status: number | null
  readonly why: string
}

/** The keep-alive connections of one caller to one server. */
export interface Wire {
  readonly port: number
  /** Dies if a response does not conform to the served document. */
  readonly ask: (ask: Ask) => Effect.Effect<Answer | Torn>
  /** Like `ask`, and also dies if the response is incomplete. */
  readonly answer: (ask: Ask) => Effect.Effect<Answer>
}

/** Opens a connection pool to a local port. Its connections close with the scope. */
export const openWire = Effect.fnUntraced(function* (port: number) {
  const agent = yield* Effect.acquireRelease(
    // Do not reuse a connection that the server is about to close.
    Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 128, agentKeepAliveTimeoutBuffer: 4_000 })),
    (opened) => Effect.sync(() => opened.destroy())
  )

  const ask = ({ body, cut, headers = {}, key, method, path }: Ask) =>
    Effect.callback<Answer | Torn>((resume) => {
      let status: number | null = null
      let timer: NodeJS.Timeout | undefined
      const torn = (why: string) => {
        clearTimeout(timer)
        resume(Effect.succeed({ _tag: "Torn", status, why }))
      }
      const sent = request(
        {
          host: "127.0.0.1",
          port,
          method,
          path,
          agent,
          headers: {
            ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            ...(body === undefined ? {} : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
            ...headers
          }
        },
        (response) => {
          status = response.statusCode ?? 0
          if (cut === "head") {
            response.destroy()
            return torn("cut at the head")
          }
          const chunks: Array<Buffer> = []
          response.on("data", (chunk: Buffer) => chunks.push(chunk))
          response.on("error", (cause) => torn(cause.message))
          response.on("end", () => {
            clearTimeout(timer)
            const text = Buffer.concat(chunks).toString("utf8")
            const answer: Answer = { _tag: "Answer", status: status ?? 0, headers: response.headers, text }
            resume(
              Effect.as(
                Effect.sync(() => assertConforms(method, path, answer)),
                answer
              )
            )
          })
        }
      )
      sent.on("error", (cause) => torn(cause.message))
      if (typeof cut === "object") timer = setTimeout(() => sent.destroy(new Error("cut by the clock")), cut.afterMillis)
      sent.end(body, () => {
        if (cut === "sent") sent.destroy(new Error("cut when sent"))
      })
      return Effect.sync(() => {
        clearTimeout(timer)
        sent.destroy()
      })
    })

  const wire: Wire = {
    port,
    ask,
    answer: (call) =>
      Effect.flatMap(ask(call), (result) =>
        result._tag === "Answer" ? Effect.succeed(result) : Effect.die(new Error(`${call.method} ${call.path}: no response: ${result.why}`))
      )
  }
  return wire
})

const Failure = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, param: optionalNullable(Schema.String) }) }))
const decodeFailure = Schema.decodeUnknownOption(Failure)

/** The code and parameter of an error. None if the response is not an error. */
export const failureOf = ({ text }: Pick<Answer, "text">) => Option.map(decodeFailure(text), ({ error }) => error)

/** The strictly decoded body of a response. */
export const bodyOf = <A>(schema: Schema.Codec<A, unknown>, { text }: Pick<Answer, "text">): A =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema), { onExcessProperty: "error" })(text)
