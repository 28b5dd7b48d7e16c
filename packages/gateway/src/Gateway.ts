import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { Ids, RequestId } from "@seatrial/domain"
import { ApiKeys, type Caller, Metering, Routes } from "@seatrial/store"
import { Context, Effect, FiberSet, Layer, Option, Redacted, Schedule, Stream } from "effect"
import { Concurrency } from "./Concurrency.ts"
import { EngineClient } from "./EngineClient.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { elapsed, Inference } from "./Inference.ts"
import { readJson } from "./readBody.ts"
import {
  internal,
  invalidApiKey,
  methodNotAllowed,
  missingApiKey,
  missingScope,
  modelNotFound,
  modelStarting,
  notFound,
  type Refusal,
  writeRefusal
} from "./refusals.ts"
import { checkRequest, type Endpoint, namesOf } from "./requestBody.ts"

const endpoints = new Map<string, Endpoint>([
  ["/v1/chat/completions", "/v1/chat/completions"],
  ["/v1/completions", "/v1/completions"]
])

const pathOf = (request: IncomingMessage): string => (request.url ?? "/").split("?", 1)[0] ?? "/"

/** Whether a request is the gateway's: where gateway and API share an address, all else is the API's. */
export const isInferencePath = (url: string | undefined): boolean => endpoints.has((url ?? "/").split("?", 1)[0] ?? "/")

/** The data path of inference: checks a request, routes it, and passes the engine's answer through. */
export class Gateway extends Context.Service<Gateway, { readonly handler: RequestListener }>()("seatrial/Gateway") {
  static readonly layerHandler = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const config = yield* GatewayConfig
      const keys = yield* ApiKeys
      const ids = yield* Ids
      const inference = yield* Inference
      const metering = yield* Metering
      const routes = yield* Routes
      const concurrency = new Concurrency(config)
      const run = yield* FiberSet.makeRuntime()

      const authenticate = Effect.fnUntraced(function* (request: IncomingMessage) {
        const header = request.headers.authorization
        if (header === undefined) return yield* missingApiKey
        const token = /^Bearer +(\S+) *$/i.exec(header)?.[1]
        const caller = token === undefined ? Option.none<Caller>() : yield* keys.authenticate(Redacted.make(token))
        if (Option.isNone(caller)) return yield* invalidApiKey
        return caller.value
      })

      /** From an authenticated caller on, every outcome is recorded. */
      const admit = Effect.fnUntraced(function* (
        id: RequestId,
        endpoint: Endpoint,
        caller: Caller,
        request: IncomingMessage,
        response: ServerResponse,
        startedAt: number
      ) {
        let names: { readonly model: string | null; readonly stream: boolean | null } = { model: null, stream: null }
        const admitted = yield* Effect.gen(function* () {
          if (!caller.scopes.has("inference:write")) return yield* missingScope("inference:write")
          yield* concurrency.take(caller)
          const parsed = yield* readJson(request, config.maxBody, config.bodyTimeout)
          names = namesOf(parsed)
          const checked = yield* checkRequest(endpoint, parsed)
          const route = yield* routes.find(caller.orgId, checked.model)
          if (Option.isNone(route)) return yield* modelNotFound(`There is no model ${checked.model.slice(0, 128)}.`, "model")
          if (route.value.endpoints.length === 0) return yield* modelStarting
          return { id, caller, checked, route: route.value, response, startedAt }
        }).pipe(
          Effect.tapError((error) => {
            const known = names.model === null ? Effect.succeedNone : routes.find(caller.orgId, names.model)
            return Effect.flatMap(known, (route) =>
              metering.refuse({
                id,
                orgId: caller.orgId,
                keyId: caller.keyId,
                endpoint,
                streamed: names.stream,
                modelId: Option.getOrNull(Option.map(route, ({ modelId }) => modelId)),
                model: Option.getOrNull(Option.map(route, ({ model }) => model)),
                statusCode: error.status,
                latencyMs: elapsed(startedAt),
                error: { code: error.code, message: error.message, param: error.param }
              })
            )
          })
        )
        yield* inference.serve(admitted)
      }, Effect.scoped)

      const answer = Effect.fnUntraced(function* (id: RequestId, request: IncomingMessage, response: ServerResponse, startedAt: number) {
        const path = pathOf(request)
        if (path === "/healthz" || path === "/readyz") return response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok"}')
        const endpoint = endpoints.get(path)
        if (endpoint === undefined) return yield* notFound(`There is no route ${request.method} ${path.slice(0, 128)}.`)
        if (request.method !== "POST") return yield* methodNotAllowed(request.method ?? "", "POST")
        return yield* admit(id, endpoint, yield* authenticate(request), request, response, startedAt)
      })

      const handle = Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
        const startedAt = performance.now()
        const id = yield* ids.make(RequestId)
        response.setHeader("x-request-id", id)
        response.setHeader("request-id", id)
        yield* answer(id, request, response, startedAt).pipe(
          Effect.catch((error: Refusal) => Effect.sync(() => writeRefusal(response, error, id))),
          Effect.catchDefect((defect) =>
            Effect.logError("inference request failed", defect).pipe(
              Effect.annotateLogs("request_id", id),
              Effect.andThen(Effect.sync(() => writeRefusal(response, internal, id)))
            )
          )
        )
        // What the caller still sends of a body that was not wanted is not read: the connection ends with the answer.
        if (!request.complete) response.once("finish", () => request.destroy())
      })

      return Gateway.of({
        handler: (request, response) => {
          response.on("error", () => response.destroy())
          run(handle(request, response))
        }
      })
    })
  )

  /** Asks each endpoint that no gateway has reached yet whether it is there, and tells so: the operator sends no traffic to others. */
  static readonly layerReachability = Layer.effectDiscard(
    Effect.gen(function* () {
      const engine = yield* EngineClient
      const routes = yield* Routes
      const prove = Effect.fnUntraced(function* ({
        revisionId,
        url
      }: {
        readonly revisionId: Parameters<typeof routes.markReachable>[0]
        readonly url: string
      }) {
        const answer = yield* engine.call({ url, path: "/health", method: "GET", body: null, requestId: "reachability", timeout: 2_000 })
        answer.resume()
        if (answer.statusCode !== 200) return yield* Effect.fail("not ready")
        yield* routes.markReachable(revisionId, url)
      })
      yield* routes.unproven.pipe(
        Stream.mapEffect((endpoint) => Effect.ignore(Effect.retry(prove(endpoint), Schedule.spaced("500 millis").pipe(Schedule.upTo({ times: 20 })))), {
          concurrency: 16,
          unordered: true
        }),
        Stream.runDrain,
        Effect.forkScoped
      )
    })
  )

  /** Ends the records of requests whose gateway died. */
  static readonly layerSweeper = Layer.effectDiscard(
    Effect.gen(function* () {
      const metering = yield* Metering
      yield* Effect.forkScoped(
        metering.sweep.pipe(
          Effect.catchDefect((defect) => Effect.logWarning("sweep failed", defect)),
          Effect.repeat(Schedule.spaced("5 seconds"))
        )
      )
    })
  )

  static readonly layer = Layer.mergeAll(Gateway.layerHandler.pipe(Layer.provide(Inference.layer)), Gateway.layerReachability, Gateway.layerSweeper).pipe(
    Layer.provide(EngineClient.layer),
    Layer.provide(GatewayConfig.layer)
  )
}
