import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { answerChoices } from "./answerChoices.ts"
import { answerMessage } from "./answerMessage.ts"
import { answerResponse } from "./answerResponse.ts"
import type { Booted } from "./Boot.ts"
import { askMessage, countTokens } from "./messages.ts"
import { ApiError, badRequest } from "./Protocol.ts"
import { askChat, askText, detokenize, tokenize } from "./Routes.ts"
import { askResponse } from "./responses.ts"
import { ownSpeech, type Speech } from "./Speech.ts"
import { sendError, sendJson } from "./sending.ts"

const maxBodyBytes = 16 * 1024 * 1024

/**
 * Reads a body of at most 16 MiB; null if the client disconnected. Rejects with `ApiError` 400 or 413, and the rest of
 * the body is discarded.
 */
const readBody = (request: IncomingMessage): Promise<string | null> =>
  new Promise((resolve, reject) => {
    const type = request.headers["content-type"] ?? "application/json"
    if (!/^application\/json\s*(;|$)/i.test(type)) return reject(badRequest("Unsupported Media Type: Only 'application/json' is allowed"))
    let chunks: Array<Buffer> = []
    let size = 0
    request.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBodyBytes) return chunks.push(chunk)
      chunks = []
      reject(new ApiError(413, "BadRequestError", `Request body is larger than ${maxBodyBytes} bytes`))
    })
    request.once("end", () => resolve(Buffer.concat(chunks).toString("utf8")))
    request.once("close", () => resolve(null))
  })

const modelList = ({ engine, startedAt }: Booted) => {
  const { adapter, model, servedModelNames } = engine.settings
  const card = (id: string, root: string, parent: string | null, max_model_len: number | null) => ({
    id,
    object: "model",
    created: startedAt,
    owned_by: "seatrial",
    root,
    parent,
    max_model_len,
    permission: []
  })
  const own = servedModelNames.map((id) => card(id, model, null, engine.maxModelLen))
  return { object: "list", data: adapter === null ? own : [...own, card(adapter.name, adapter.directory, servedModelNames[0], null)] }
}

const requestIdOf = (request: IncomingMessage): string => {
  const header = request.headers["x-request-id"]
  return typeof header === "string" && /^[\x21-\x7e]{1,256}$/.test(header) ? header : randomUUID().replaceAll("-", "")
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void

/** A handler that gets the body as text. */
type Posted = (text: string, request: IncomingMessage, response: ServerResponse) => void

const posted =
  ({ engine }: Booted, handle: Posted): Handler =>
  async (request, response) => {
    const text = await readBody(request)
    if (text !== null) handle(engine.seams.got?.(request.url ?? "/", text) ?? text, request, response)
  }

/** The paths that answer a POST, and their handlers. */
const postedRoutes = (booted: Booted, speech: Speech): Readonly<Record<string, Posted>> => {
  const { engine, template } = booted
  return {
    "/tokenize": (text, _, response) => sendJson(response, 200, tokenize(engine, template, text)),
    "/detokenize": (text, _, response) => sendJson(response, 200, detokenize(engine, text)),
    "/v1/chat/completions": (text, request, response) => answerChoices(booted, speech, askChat(engine, template, speech, text), requestIdOf(request), response),
    "/v1/responses": (text, request, response) => answerResponse(booted, speech, askResponse(engine, template, speech, text), requestIdOf(request), response),
    "/v1/messages": (text, request, response) => answerMessage(booted, speech, askMessage(engine, template, speech, text), requestIdOf(request), response),
    "/v1/messages/count_tokens": (text, _, response) => sendJson(response, 200, countTokens(engine, template, speech, text)),
    "/v1/completions": (text, request, response) => answerChoices(booted, speech, askText(engine, text), requestIdOf(request), response)
  }
}

/** The paths that report the loaded weights, by any of two methods. */
const weightRoutes = (booted: Booted): ReadonlyArray<readonly [route: string, handler: Handler]> => {
  const report = (of: "values" | "check") =>
    posted(booted, (text, _, response) => {
      const { body, status } = booted.loaded[of](text)
      sendJson(response, status, body)
    })
  return ["GET", "POST"].flatMap((method) => [
    [`${method} /get_weights_by_name`, report("values")] as const,
    [`${method} /weights_checker`, report("check")] as const
  ])
}

/** Every route, as method and path. `state.warm`: whether a first answer was generated. */
const routesOf = (booted: Booted, speech: Speech, state: { readonly warm: boolean }): ReadonlyMap<string, Handler> => {
  const { fault } = booted.engine
  const healthy: Handler = (_, response) => {
    response.writeHead(state.warm ? 200 : 503, { "content-length": 0 }).end()
  }
  const metrics: Handler = (_, response) => {
    const text = speech.metrics(booted)
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text)
  }
  const routes = new Map<string, Handler>([
    ["GET /health", healthy],
    ["GET /ping", healthy],
    ["GET /v1/models", (_, response) => sendJson(response, 200, modelList(booted))],
    ["GET /metrics", metrics],
    ...Object.entries(postedRoutes(booted, speech)).map(([path, handle]) => [`POST ${path}`, posted(booted, handle)] as const)
  ])
  for (const [path, report] of Object.entries(speech.additionalPaths)) routes.set(`GET ${path}`, (_, response) => sendJson(response, 200, report(booted)))
  if (speech.tellsWeights) for (const [route, handler] of weightRoutes(booted)) routes.set(route, handler)
  const { version } = speech
  if (version !== null)
    routes.set("GET /version", (_, response) => sendJson(response, 200, { version: fault === null ? version : `${version}+mutant.${fault}` }))
  if (speech.warmsUp) routes.set("GET /ready", healthy)
  return routes
}

/** Handles a request as a fault wants it. True if it is not to be served any further. */
const isLost = ({ engine: { seams } }: Booted, path: string, response: ServerResponse): boolean => {
  switch (seams.reception?.(path)) {
    case "hang":
      return true
    case "drop":
      response.destroy()
      return true
    case "missing":
      throw new ApiError(404, "NotFoundError", "Not Found")
    case "fail":
      throw new ApiError(500, "InternalServerError", "Internal server error")
    default:
      return false
  }
}

/** Creates the HTTP server without starting it. `state.warm`: whether a first answer was generated. */
export const makeServer = (booted: Booted, speech: Speech = ownSpeech, state: { warm: boolean } = { warm: true }): Server => {
  const routes = routesOf(booted, speech, state)
  const paths = new Set([...routes.keys()].map((route) => route.slice(route.indexOf(" ") + 1)))
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/"
    const handler = routes.get(`${request.method === "HEAD" ? "GET" : request.method} ${path}`)
    try {
      if (handler === undefined) {
        throw paths.has(path) ? new ApiError(405, "MethodNotAllowedError", "Method Not Allowed") : new ApiError(404, "NotFoundError", "Not Found")
      }
      if (!isLost(booted, path, response)) await handler(request, response)
    } catch (cause) {
      sendError(response, speech, cause)
    }
  }
  return createServer((request, response) => {
    void serve(request, response)
  })
}
