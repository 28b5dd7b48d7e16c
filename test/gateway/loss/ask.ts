import { request } from "node:http"
import { CompletionUsage, dataFrame, optionalNullable, streamEnd, streamEvents } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { Plan } from "./LossyEngine.ts"

const Frame = Schema.fromJsonString(
  Schema.Struct({
    choices: Schema.optionalKey(Schema.Array(Schema.Struct({ delta: Schema.optionalKey(Schema.Struct({ content: optionalNullable(Schema.String) })) }))),
    usage: optionalNullable(CompletionUsage),
    error: Schema.optionalKey(Schema.Struct({ code: Schema.String }))
  })
)
const decode = Schema.decodeUnknownOption(Frame)

/** What a caller saw of its request. */
export interface Seen {
  readonly id: string | null
  readonly plan: Plan
  readonly streamed: boolean
  readonly status: number | null
  /** Tokens that it read. */
  readonly tokens: number
  readonly usage: typeof CompletionUsage.Type | null
  readonly error: string | null
  /** `finished`: the last byte of an answer that is complete. `told`: an error. `cut`: the connection ended. `left`: the caller did. */
  readonly end: "finished" | "told" | "cut" | "left"
}

export interface Question {
  readonly address: string
  readonly key: string
  readonly model: string
  readonly plan: Plan
  readonly stream: boolean
  /** The caller leaves when it has read so many tokens. */
  readonly leaveAfter: number | null
}

/** Asks once; always gives what was seen. */
export const ask = ({ address, key, leaveAfter, model, plan, stream }: Question): Promise<Seen> =>
  new Promise((resolve) => {
    let text = ""
    let id: string | null = null
    let status: number | null = null
    let isOver = false
    // The last event may be incomplete.
    const frames = () => streamEvents(text).flatMap((data) => Option.toArray(decode(data)))
    const tokensIn = () => frames().reduce((sum, { choices }) => sum + (choices?.[0]?.delta?.content?.length ?? 0), 0)
    const settle = (end: Seen["end"]) => {
      if (isOver) return
      isOver = true
      const all = status === 200 && stream ? frames() : Option.toArray(decode(text))
      const usage = all.findLast(({ usage }) => usage != null)?.usage ?? null
      const error = all.find(({ error }) => error !== undefined)?.error?.code ?? null
      const tokens = stream ? tokensIn() : (/"content":"(x*)"/.exec(text)?.[1]?.length ?? 0)
      resolve({ id, plan, streamed: stream, status, tokens, usage, error, end: end === "finished" && (error !== null || status !== 200) ? "told" : end })
      outgoing.destroy()
    }
    const body = JSON.stringify({
      model,
      messages: [{ role: "user", content: JSON.stringify(plan) }],
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {})
    })
    const outgoing = request(`${address}/v1/chat/completions`, {
      agent: false,
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "content-length": Buffer.byteLength(body) }
    })
    outgoing.on("error", () => settle("cut"))
    outgoing.once("response", (response) => {
      status = response.statusCode ?? null
      const header = response.headers["x-request-id"]
      id = typeof header === "string" ? header : null
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        text += chunk
        if (leaveAfter !== null && tokensIn() >= leaveAfter) settle("left")
      })
      response.on("error", () => settle("cut"))
      response.on("close", () => settle(response.complete && (!stream || status !== 200 || text.endsWith(dataFrame(streamEnd))) ? "finished" : "cut"))
    })
    outgoing.end(body)
  })
