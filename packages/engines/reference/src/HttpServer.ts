import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { type Usage, usageOf } from "./Answers.ts"
import type { Booted } from "./Boot.ts"
import { type Ending, generate, type Piece, type ReportedToken } from "./Generation.ts"
import { ApiError, badRequest } from "./Protocol.ts"
import { type Asked, askChat, askText, detokenize, tokenize } from "./Routes.ts"
import { ownSpeech, type Speech } from "./Speech.ts"

const maxBodyBytes = 16 * 1024 * 1024

const sendText = (response: ServerResponse, status: number, json: string, headers: Readonly<Record<string, string>> = {}) => {
  if (response.headersSent || response.destroyed) return
  const bytes = Buffer.from(json)
  response.writeHead(status, { "content-type": "application/json", "content-length": bytes.length, ...headers }).end(bytes)
}

const sendJson = (response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  sendText(response, status, JSON.stringify(body), headers)

const sendError = (response: ServerResponse, speech: Speech, cause: unknown) => {
  const error = cause instanceof ApiError ? cause : new ApiError(500, "InternalServerError", "Internal server error")
  sendJson(response, error.status, speech.error(error), error.status === 413 ? { connection: "close" } : {})
}

/** Reads a body of at most 16 MiB; null where the client went away. Rejects with `ApiError` 400 or 413, after which the rest is discarded. */
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

const promptLogprobsOf = (engine: Booted["engine"], tokens: ReadonlyArray<ReportedToken>) => [
  null,
  ...tokens.map(({ id, logprobs }) =>
    Object.fromEntries(
      [...(logprobs?.top ?? []), { id, logprob: logprobs?.chosen ?? 0 }].map((one) => [
        String(one.id),
        { logprob: one.logprob, decoded_token: engine.vocabulary.textOf(one.id) }
      ])
    )
  )
]

/** Writes one answer, whole or as a stream, and aborts its generation as soon as the client's connection closes. */
const answer = ({ engine }: Booted, speech: Speech, asked: Asked, requestId: string, response: ServerResponse) => {
  const { body, dialect, plan } = asked
  const envelope = { id: `${asked.prefix}${requestId}`, created: Math.floor(Date.now() / 1000), model: body.model ?? engine.settings.servedModelNames[0] }
  const usage = ({ cachedTokens, completionTokens }: Pick<Piece, "cachedTokens" | "completionTokens">): Usage =>
    usageOf(plan.prompt.length, completionTokens, engine.settings.enablePromptTokensDetails ? cachedTokens : null)
  const promptIds =
    body.return_token_ids === true || (speech.promptIdsInChoice && body.return_prompt_token_ids === true) ? { prompt_token_ids: plan.prompt } : {}
  const withUsage = body.stream_options?.include_usage === true
  const continuous = withUsage && body.stream_options?.continuous_usage_stats === true
  const engineFailed = new ApiError(500, "InternalServerError", "The engine computed a value that is not a number")
  let text = ""
  let opened = false
  const tokens: Array<ReportedToken> = []

  const sending = engine.seams.sending?.() ?? ((text: string) => [text])
  const frame = (data: unknown) => {
    if (response.destroyed) return
    for (const one of sending(typeof data === "string" ? data : JSON.stringify(data), "frame")) response.write(`data: ${one}\n\n`)
  }
  const chunk = (choice: object, { completionTokens }: Pick<Piece, "completionTokens">) =>
    frame({
      ...envelope,
      object: dialect.chunkObject,
      choices: [choice],
      ...(continuous ? { usage: usageOf(plan.prompt.length, completionTokens, null) } : {})
    })
  const open = () => {
    if (opened) return
    opened = true
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", "x-accel-buffering": "no" })
    const opening = dialect.opening()
    if (opening !== null) chunk(opening, { completionTokens: 0 })
  }
  const onPiece = (piece: Piece) => {
    if (body.stream === true) {
      open()
      const choice = dialect.delta(piece, text.length)
      if (choice !== null) chunk(choice, piece)
    } else {
      tokens.push(...piece.tokens)
    }
    text += piece.text
  }
  const endStream = (ending: Ending) => {
    if (response.destroyed) return
    open()
    if (ending.reason === "error") {
      frame(engineFailed.body())
    } else {
      chunk(dialect.last(ending, text.length), ending)
      if (withUsage) frame({ ...envelope, object: dialect.chunkObject, choices: [], usage: usage(ending) })
    }
    frame("[DONE]")
    response.end()
  }
  const endWhole = (ending: Ending, promptLogprobs: ReadonlyArray<ReportedToken>) => {
    if (ending.reason === "error") return sendError(response, speech, engineFailed)
    tokens.push(...ending.tokens)
    const answered = {
      ...envelope,
      object: dialect.object,
      choices: [{ ...dialect.whole(ending, text + ending.text, tokens), ...(speech.promptIdsInChoice ? promptIds : {}) }],
      usage: usage(ending),
      ...(body.prompt_logprobs != null ? { prompt_logprobs: promptLogprobsOf(engine, promptLogprobs) } : {}),
      ...(speech.promptIdsInChoice ? {} : promptIds)
    }
    sendText(response, 200, sending(JSON.stringify(answered), "whole").join(""))
  }
  const ticket = generate(engine, body, plan, onPiece, body.stream === true ? endStream : endWhole)
  response.once("close", ticket.abort)
}

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

/** The engine's HTTP server, not yet listening. `state.warm`: whether a first answer has been made. */
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
      posted((text, request, response) => answer(booted, speech, askChat(engine, template, speech, text), requestIdOf(request), response))
    ],
    ["POST /v1/completions", posted((text, request, response) => answer(booted, speech, askText(engine, text), requestIdOf(request), response))]
  ])
  for (const [path, tell] of Object.entries(speech.told)) routes.set(`GET ${path}`, (_, response) => sendJson(response, 200, tell(booted)))
  const { version } = speech
  const { mutant } = engine.settings
  if (version !== null)
    routes.set("GET /version", (_, response) => sendJson(response, 200, { version: mutant === null ? version : `${version}+mutant.${mutant}` }))
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
