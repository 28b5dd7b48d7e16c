import { request } from "node:http"
import { connect, type Socket } from "node:net"
import { Effect } from "effect"
import type { AttackStage } from "./AttackStage.ts"

const count = ({ answers }: AttackStage, answer: string) => void answers.set(answer, (answers.get(answer) ?? 0) + 1)

export interface AttackRequest {
  readonly path?: string
  readonly method?: string
  /** The attacker's key if absent; none if null. */
  readonly secret?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** Text as it is, or a value that is sent as JSON. */
  readonly body?: unknown
}

/** Sends one request of the attacker and waits for the whole answer: its status, or `closed`, which the stage's `answers` count. */
export const sendRequest = (
  stage: AttackStage,
  { body = "", headers = {}, method = "POST", path = "/v1/chat/completions", secret = stage.attacker.secret }: AttackRequest = {}
): Effect.Effect<{ readonly status: number | "closed"; readonly text: string }> =>
  Effect.callback((resume) => {
    const outgoing = request(`${stage.address}${path}`, {
      method,
      agent: false,
      headers: { "content-type": "application/json", ...(secret === null ? {} : { authorization: `Bearer ${secret}` }), ...headers }
    })
    let isOver = false
    const settle = (status: number | "closed", text: string) => {
      if (isOver) return
      isOver = true
      count(stage, String(status))
      resume(Effect.succeed({ status, text }))
    }
    outgoing.on("error", () => settle("closed", ""))
    outgoing.once("response", (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        text += chunk
      })
      response.on("error", () => settle("closed", text))
      response.on("close", () => settle(response.complete ? (response.statusCode ?? "closed") : "closed", text))
    })
    outgoing.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body))
    return Effect.sync(() => {
      isOver = true
      outgoing.destroy()
    })
  })

/** A bare connection to the first gateway, for what no HTTP client sends. The scope closes it; the status of each answer is counted, and `closed` if there was none. */
export const openConnection = (stage: AttackStage) =>
  Effect.acquireRelease(
    Effect.sync((): Socket => {
      const { hostname, port } = new URL(stage.address)
      const socket = connect(Number(port), hostname)
      let isAnswered = false
      socket.on("error", () => {})
      socket.on("data", (bytes: Buffer) => {
        for (const [, status = ""] of bytes.toString("latin1").matchAll(/HTTP\/1\.1 (\d{3})/g)) {
          isAnswered = true
          count(stage, status)
        }
      })
      socket.on("close", () => {
        if (!isAnswered) count(stage, "closed")
      })
      return socket
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )
