import { Agent, type IncomingHttpHeaders, request } from "node:http"
import { Effect, Option, Schema } from "effect"
import { assertConforms } from "../../packages/server/test/conformance.ts"

/** When the caller tears its connection: as soon as all is sent, some milliseconds later, or once the answer's head has come. */
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

/** No whole answer came; `status` where its head did. */
export interface Torn {
  readonly _tag: "Torn"
  readonly status: number | null
  readonly why: string
}

/** The connections of one caller to one server, kept open between requests. */
export interface Wire {
  readonly port: number
  /** Dies where an answer is not what the served document says of it. */
  readonly ask: (ask: Ask) => Effect.Effect<Answer | Torn>
  /** Dies where no whole answer comes, too. */
  readonly answer: (ask: Ask) => Effect.Effect<Answer>
}

/** Opens a wire to a port of this machine; its connections end with the scope. */
export const openWire = Effect.fnUntraced(function* (port: number) {
  const agent = yield* Effect.acquireRelease(
    // A connection that was idle for nearly as long as the server keeps it is not used again.
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
    answer: (given) =>
      Effect.flatMap(ask(given), (heard) =>
        heard._tag === "Answer" ? Effect.succeed(heard) : Effect.die(new Error(`${given.method} ${given.path}: no answer: ${heard.why}`))
      )
  }
  return wire
})

const Failure = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, param: Schema.optionalKey(Schema.NullOr(Schema.String)) }) }))
const decodeFailure = Schema.decodeUnknownOption(Failure)

/** An error's code and parameter; none where the answer is no error. */
export const failureOf = ({ text }: Pick<Answer, "text">) => Option.map(decodeFailure(text), ({ error }) => error)

/** An answer's body, strictly decoded. */
export const bodyOf = <A>(schema: Schema.Codec<A, unknown>, { text }: Pick<Answer, "text">): A =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema), { onExcessProperty: "error" })(text)
