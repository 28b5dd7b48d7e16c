import { Api } from "@seatrial/api"
import { type Receipt, type SignedReceipt, signedMediaType } from "@seatrial/domain"
import { Effect, type Redacted } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { exchange, recording } from "./exchange.ts"
import { InvalidInput, VersionSkew } from "./failures.ts"
import type { PageRequest, PageSize } from "./pages.ts"
import { defaultRetry, type RetryPolicy, retrying } from "./retry.ts"

export interface SeatrialClientOptions {
  /** Base URL of the API, such as `http://127.0.0.1:8080`. */
  readonly address: string
  /** An API key of the organization. Without a key, only the public catalog and the probes are accessible. */
  readonly apiKey?: Redacted.Redacted
  readonly retry?: Partial<RetryPolicy>
}

/** The filters of a list: its query without the page cursor. */
export type Filters<Query> = Omit<Query, keyof PageRequest> & PageSize

export const none = { query: {} }

type ReceiptAnswer = { readonly body: Receipt } | SignedReceipt

const checkAddress = (address: string) =>
  URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)
    ? Effect.succeed(address.replace(/\/+$/, ""))
    : Effect.fail(new InvalidInput({ message: `${address} is not an http or https address.`, param: "address" }))

/** An id as a path segment. An empty id, `.` and `..` are rejected, because the URL would address another operation. */
export const segment = (id: string) =>
  /^\.{0,2}$/.test(id) ? Effect.fail(new InvalidInput({ message: `"${id}" is not an id.`, param: "id" })) : Effect.succeed(id)

/** The ways in which operations are called. */
export const makeCalls = Effect.fnUntraced(function* ({ address, apiKey, retry = {} }: SeatrialClientOptions) {
  const base = yield* checkAddress(address)
  const transport = yield* HttpClient.HttpClient
  const client = recording(apiKey === undefined ? transport : HttpClient.mapRequest(transport, HttpClientRequest.bearerToken(apiKey)))
  const raw = yield* HttpApiClient.makeWith(Api, { baseUrl: base, httpClient: client })
  const once = exchange(base)
  const again = retrying({ ...defaultRetry, ...retry })
  // Every operation of the contract is safe to repeat: reads, previews, creates with the same idempotency key, and
  // cancels (see `cancel`).
  const call = <A, E>(operation: Parameters<typeof once<A, E, never>>[0]) => again(once(operation))

  const probe = <A>(operation: Parameters<typeof once<A, never, never>>[0]) => call<A, never>(operation)
  const withId = <A, E>(id: string, operation: (id: string) => Parameters<typeof once<A, E, never>>[0]) =>
    Effect.flatMap(segment(id), (checked) => call(operation(checked)))

  const unexpectedResponse = (what: string) => Effect.fail(new VersionSkew({ message: `${base} responded ${what}.`, status: 200, requestId: null }))
  // The `Accept` header alone determines the form of a receipt.
  const accepting = yield* HttpApiClient.endpoint(Api, {
    group: "org",
    endpoint: "getReceipt",
    httpClient: HttpClient.mapRequest(client, HttpClientRequest.setHeader("accept", signedMediaType)),
    baseUrl: base
  })
  const plain = <E>(answer: Effect.Effect<ReceiptAnswer, E>) =>
    Effect.flatMap(answer, (receipt) =>
      "payload" in receipt ? unexpectedResponse("with a signed receipt that was not requested") : Effect.succeed(receipt.body)
    )
  const signed = <E>(answer: Effect.Effect<ReceiptAnswer, E>) =>
    Effect.flatMap(answer, (receipt) => ("payload" in receipt ? Effect.succeed(receipt) : unexpectedResponse("with a receipt that is not signed")))
  return { accepting, again, call, once, plain, probe, raw, signed, unexpectedResponse, withId }
})
export type Calls = Effect.Success<ReturnType<typeof makeCalls>>
