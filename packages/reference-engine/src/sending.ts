import type { ServerResponse } from "node:http"
import { ApiError } from "./Protocol.ts"
import type { Speech } from "./Speech.ts"

export const sendText = (response: ServerResponse, status: number, json: string, headers: Readonly<Record<string, string>> = {}) => {
  if (response.headersSent || response.destroyed) return
  const bytes = Buffer.from(json)
  response.writeHead(status, { "content-type": "application/json", "content-length": bytes.length, ...headers }).end(bytes)
}

export const sendJson = (response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  sendText(response, status, JSON.stringify(body), headers)

export const sendError = (response: ServerResponse, speech: Pick<Speech, "error">, cause: unknown) => {
  const error = cause instanceof ApiError ? cause : new ApiError(500, "InternalServerError", "Internal server error")
  sendJson(response, error.status, speech.error(error), error.status === 413 ? { connection: "close" } : {})
}

export const openEventStream = (response: ServerResponse) =>
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", "x-accel-buffering": "no" })

export const notANumber = new ApiError(500, "InternalServerError", "The engine computed a value that is not a number")
