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

/** Creates the HTTP server without starting it. `state.warm`: whether a first answer was generated. */
export const makeServer = (booted: Booted, speech: Speech = ownSpeech, state: { warm: boolean } = { warm: true }): Server => {
  const { engine, template } = booted
  const posted =
    (handle: (text: string, request: IncomingMessage, response: ServerResponse) => void): Handler =>
    async (request, response) => {
      const text = await readBody(request)
      if (text !== null) handle(engine.seams.got?.(request.url ?? "/", text) ?? text, request, response)
    }
  const healthy: Handler = (_, response) => {
    response.writeHead(state.warm ? 200 : 503, { "content-length": 0 }).end()
  }
  const routes = new Map<string, Handler>([
    ["GET /health", healthy],
    ["GET /ping", healthy],
    ["GET /v1/models", (_, response) => sendJson(response, 200, modelList(booted))],
    [
      "GET /metrics",
      (_, response) => {
        const text = speech.metrics(booted)
        response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text)
      }
    ],
    ["POST /tokenize", posted((text, _, response) => sendJson(response, 200, tokenize(engine, template, text)))],
    ["POST /detokenize", posted((text, _, response) => sendJson(response, 200, detokenize(engine, text)))],
    [
      "POST /v1/chat/completions",
      posted((text, request, response) => answerChoices(booted, speech, askChat(engine, template, speech, text), requestIdOf(request), response))
    ],
    [
      "POST /v1/responses",
      posted((text, request, response) => answerResponse(booted, speech, askResponse(engine, template, speech, text), requestIdOf(request), response))
    ],
    [
      "POST /v1/messages",
      posted((text, request, response) => answerMessage(booted, speech, askMessage(engine, template, speech, text), requestIdOf(request), response))
    ],
    ["POST /v1/messages/count_tokens", posted((text, _, response) => sendJson(response, 200, countTokens(engine, template, speech, text)))],
    ["POST /v1/completions", posted((text, request, response) => answerChoices(booted, speech, askText(engine, text), requestIdOf(request), response))]
  ])
  for (const [path, tell] of Object.entries(speech.additionalPaths)) routes.set(`GET ${path}`, (_, response) => sendJson(response, 200, tell(booted)))
  if (speech.tellsWeights) {
    for (const method of ["GET", "POST"]) {
      const tell = (of: "values" | "check") =>
        posted((text, _, response) => {
          const { body, status } = booted.loaded[of](text)
          sendJson(response, status, body)
        })
      routes.set(`${method} /get_weights_by_name`, tell("values"))
      routes.set(`${method} /weights_checker`, tell("check"))
    }
  }
  const { version } = speech
  if (version !== null)
    routes.set("GET /version", (_, response) => sendJson(response, 200, { version: engine.fault === null ? version : `${version}+mutant.${engine.fault}` }))
  if (speech.warmsUp) routes.set("GET /ready", healthy)
  const paths = new Set([...routes.keys()].map((route) => route.slice(route.indexOf(" ") + 1)))
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/"
    const handler = routes.get(`${request.method === "HEAD" ? "GET" : request.method} ${path}`)
    try {
      if (handler === undefined) {
        throw paths.has(path) ? new ApiError(405, "MethodNotAllowedError", "Method Not Allowed") : new ApiError(404, "NotFoundError", "Not Found")
      }
      const reception = engine.seams.reception?.(path) ?? "serve"
      if (reception === "hang") return
      if (reception === "drop") return void response.destroy()
      if (reception === "missing") throw new ApiError(404, "NotFoundError", "Not Found")
      if (reception === "fail") throw new ApiError(500, "InternalServerError", "Internal server error")
      await handler(request, response)
    } catch (cause) {
      sendError(response, speech, cause)
    }
  }
  return createServer((request, response) => {
    void serve(request, response)
  })
}
