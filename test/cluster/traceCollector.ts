import { createServer } from "node:http"
import { Effect, Schema } from "effect"

const Value = Schema.Struct({ stringValue: Schema.optionalKey(Schema.String) })
const Export = Schema.fromJsonString(
  Schema.Struct({
    resourceSpans: Schema.Array(
      Schema.Struct({
        resource: Schema.Struct({ attributes: Schema.Array(Schema.Struct({ key: Schema.String, value: Value })) }),
        scopeSpans: Schema.Array(
          Schema.Struct({
            spans: Schema.Array(
              Schema.Struct({
                traceId: Schema.String,
                spanId: Schema.String,
                parentSpanId: Schema.optionalKey(Schema.String),
                name: Schema.String,
                links: Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String }))
              })
            )
          })
        )
      })
    )
  })
)
const decode = Schema.decodeUnknownSync(Export)

export interface CollectedSpan {
  readonly service: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
}

/** Takes spans by OTLP over HTTP at its `address`, as a collector does; ends with the scope. */
export const traceCollector = Effect.gen(function* () {
  const spans: Array<CollectedSpan> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      if (request.url === "/v1/traces") {
        for (const { resource, scopeSpans } of decode(Buffer.concat(chunks).toString()).resourceSpans) {
          const service = resource.attributes.find(({ key }) => key === "service.name")?.value.stringValue ?? ""
          for (const scope of scopeSpans) for (const span of scope.spans) spans.push({ ...span, service })
        }
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  const port = yield* Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  return { address: `http://127.0.0.1:${port}`, spans: (): ReadonlyArray<CollectedSpan> => spans }
})
