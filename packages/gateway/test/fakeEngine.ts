import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { Effect } from "effect"

/** One request that an engine received. */
export interface Call {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: string
  /** Whether the gateway closed the connection before the answer was complete. */
  readonly isCut: () => boolean
}

export type Script = (call: Call) => void

/** An engine controlled by a script. */
export interface FakeEngine {
  readonly url: string
  /** Inference requests, in order. */
  readonly calls: Array<Call>
  script: Script
  /**
   * Answers requests for health, metrics and tokenizer. By default the engine is healthy and has no metrics and no
   * tokenizer.
   */
  observed: Script
}

/** A healthy engine without metrics. */
const well: Script = ({ request, response }) => response.writeHead(request.url === "/metrics" ? 404 : 200).end()

export const makeEngine = (script: Script) =>
  Effect.acquireRelease(
    Effect.callback<FakeEngine & { readonly close: () => void }>((resume) => {
      const calls: Array<Call> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          let cut = false
          response.once("close", () => {
            cut = !response.writableFinished
          })
          const call = { request, response, body: Buffer.concat(chunks).toString("utf8"), isCut: () => cut }
          if (request.method === "GET" || request.url === "/tokenize") return engine.observed(call)
          calls.push(call)
          engine.script(call)
        })
      })
      const engine = {
        url: "",
        calls,
        script,
        observed: well,
        close: () => {
          server.close()
          server.closeAllConnections()
        }
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        engine.url = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
        resume(Effect.succeed(engine))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

/** An address where nothing listens. */
export const deadAddress = "http://127.0.0.1:1"

export const usage = (prompt: number, completion: number) => ({ prompt_tokens: prompt, total_tokens: prompt + completion, completion_tokens: completion })

const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "acme/tiny" }

/** A content frame as vLLM writes it, with running usage. */
export const chunk = (content: string, completion: number | null = null) =>
  dataFrame({
    ...envelope,
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
    ...(completion === null ? {} : { usage: usage(10, completion) })
  })

/** The first frame of a chat as vLLM writes it. */
export const opening = dataFrame({ ...envelope, choices: [{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }] })

/** A content frame with the role that the gateway adds to the first frame if the engine did not. */
export const withRole = (frame: string): string => (frame.includes('"role"') ? frame : frame.replace(/"delta":\{([^}]*)\}/, '"delta":{$1,"role":"assistant"}'))

export const finish = (reason: string) => dataFrame({ ...envelope, choices: [{ index: 0, delta: {}, finish_reason: reason }] })
export const usageFrame = (completion: number) => dataFrame({ ...envelope, choices: [], usage: usage(10, completion) })
export const errorFrame = (code: number, message = "the prompt was: secret") => dataFrame({ error: { message, type: "BadRequestError", param: null, code } })
export const done = dataFrame(streamEnd)

export const openStream = ({ response }: Call): ServerResponse => response.writeHead(200, { "content-type": "text/event-stream" })

/** A complete stream of these texts: role, contents, finish, usage, end marker. */
export const streamOf = (texts: ReadonlyArray<string>): string =>
  [opening, ...texts.map((text, index) => chunk(text, index + 1)), finish("stop"), usageFrame(texts.length), done].join("")

export const streams =
  (texts: ReadonlyArray<string>): Script =>
  (call) =>
    openStream(call).end(streamOf(texts))

export const wholeAnswer = (content: string, reason = "stop") =>
  JSON.stringify({
    ...envelope,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: reason }],
    usage: usage(10, 3)
  })

export const answers =
  (body: string, status = 200): Script =>
  ({ response }) =>
    response.writeHead(status, { "content-type": "application/json" }).end(body)
