import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"

export interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly authorization: string | undefined
  readonly idempotencyKey: string | undefined
  readonly body: string
}

/** The response to one request; without it, the connection is reset. */
export interface Scripted {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
  /** Closes the connection in the middle of the body. */
  readonly cut?: boolean
}

export const reset = "reset"
export const requestId = "req_01890000000000000000000000"

/** A response with the headers of a Seatrial server. */
export const seatrial = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Scripted => ({
  status,
  headers: { "content-type": "application/json", "x-request-id": requestId, ...headers },
  body: JSON.stringify(body)
})

export const error = (status: number, type: string, code: string, headers: Readonly<Record<string, string>> = {}, param: string | null = null): Scripted =>
  seatrial(status, { error: { message: `This is ${code}.`, type, code, param, request_id: requestId } }, headers)

const readBody = async (request: IncomingMessage) => {
  const chunks: Array<string> = []
  for await (const chunk of request.setEncoding("utf8")) chunks.push(String(chunk))
  return chunks.join("")
}

const answer = (request: IncomingMessage, response: ServerResponse, scripted: Scripted | typeof reset) => {
  if (scripted === reset) return void request.socket.resetAndDestroy()
  const { body, cut = false, headers = {}, status } = scripted
  response.writeHead(status, { connection: "close", ...headers, ...(cut ? { "content-length": String(body.length) } : {}) })
  if (!cut) return void response.end(body)
  response.write(body.slice(0, body.length / 2), () => request.socket.resetAndDestroy())
}

/** A server on a free port that responds from a script in order and records the requests. */
export const misbehaving = (script: ReadonlyArray<Scripted | typeof reset>) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly address: string; readonly received: ReadonlyArray<ReceivedRequest>; readonly close: () => void }>((resume) => {
      const received: Array<ReceivedRequest> = []
      const server = createServer(async (request, response) => {
        const { authorization, "idempotency-key": key } = request.headers
        const body = await readBody(request)
        received.push({ method: request.method ?? "", url: request.url ?? "", authorization, idempotencyKey: typeof key === "string" ? key : undefined, body })
        answer(request, response, script[received.length - 1] ?? reset)
      })
      server.listen(0, "127.0.0.1", () => {
        const bound = server.address()
        const port = bound !== null && typeof bound === "object" ? bound.port : 0
        const close = () => {
          server.close()
          server.closeAllConnections()
        }
        resume(Effect.succeed({ address: `http://127.0.0.1:${port}`, received, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )
