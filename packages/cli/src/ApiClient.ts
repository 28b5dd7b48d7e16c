import { Config, Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { CommandError } from "./CommandError.ts"
import { readLocalState } from "./localState.ts"

const ErrorBody = Schema.Struct({
  error: Schema.Struct({ message: Schema.String, code: Schema.String, param: Schema.optionalKey(Schema.NullOr(Schema.String)) })
})

/** The HTTP API as the holder of one key. Answers are decoded; the API's errors become the command's. */
export class ApiClient extends Context.Service<
  ApiClient,
  {
    readonly get: <A>(path: string, schema: Schema.Codec<A, unknown>) => Effect.Effect<A, CommandError>
    readonly post: <A>(
      path: string,
      body: unknown,
      schema: Schema.Codec<A, unknown>,
      headers?: Readonly<Record<string, string>>
    ) => Effect.Effect<A, CommandError>
  }
>()("seatrial/ApiClient") {
  /** From `SEATRIAL_ADDRESS` and `SEATRIAL_API_KEY`, else the system started in this folder. */
  static readonly layer = Layer.effect(
    ApiClient,
    Effect.gen(function* () {
      const client = yield* HttpClient.HttpClient
      const local = readLocalState()
      const settings = yield* Config.all({
        address: Config.String("SEATRIAL_ADDRESS").pipe(Config.option),
        key: Config.Redacted("SEATRIAL_API_KEY").pipe(Config.option)
      })
      const address = Option.orElse(settings.address, () => Option.map(local, (state) => state.address))
      // The local system's key is for the local system: it goes to no address that somebody names.
      const ownKey = Option.map(
        Option.filter(local, (state) => Option.contains(address, state.address)),
        (state) => Redacted.make(state.api_key)
      )
      const key = Option.orElse(settings.key, () => ownKey)
      if (Option.isNone(address) || Option.isNone(key)) {
        return yield* new CommandError({
          message: "No API and key are known: set SEATRIAL_ADDRESS and SEATRIAL_API_KEY, or run this where `npm start` runs.",
          exitCode: 2
        })
      }
      const base = address.value.replace(/\/$/, "")

      const send = Effect.fnUntraced(function* <A>(request: HttpClientRequest.HttpClientRequest, schema: Schema.Codec<A, unknown>) {
        const response = yield* client
          .execute(HttpClientRequest.bearerToken(request, key.value))
          .pipe(Effect.mapError(() => new CommandError({ message: `${base} does not answer. Is the server running?` })))
        const body = yield* Effect.mapError(
          response.json,
          () => new CommandError({ message: `${base} answered ${response.status} without JSON. Is it a Seatrial server?` })
        )
        const error = Schema.decodeUnknownOption(ErrorBody)(body)
        if (Option.isSome(error)) {
          const { code, message, param } = error.value.error
          return yield* new CommandError({ message: `${message} (${code}${param === undefined || param === null ? "" : `, ${param}`})` })
        }
        return yield* Schema.decodeUnknownEffect(schema)(body).pipe(
          Effect.mapError(() => new CommandError({ message: `${base} answered something that this command does not understand. Are their versions the same?` }))
        )
      })

      return ApiClient.of({
        get: (path, schema) => send(HttpClientRequest.get(`${base}${path}`), schema),
        post: (path, body, schema, headers = {}) =>
          send(HttpClientRequest.post(`${base}${path}`).pipe(HttpClientRequest.setHeaders(headers), HttpClientRequest.bodyJsonUnsafe(body)), schema)
      })
    })
  )
}
