import Anthropic from "@anthropic-ai/sdk"
import { Effect, Schema } from "effect"
import OpenAI from "openai"
import { makeParseableResponseFormat } from "openai/lib/parser"
import { Seen, type Use } from "./Use.ts"

const decodeSeen = Schema.decodeUnknownSync(Seen)

const clientOf = ({ address, auth = "bearer", client, key, retries = 0 }: Use): object => {
  const shared = { maxRetries: retries, timeout: 60_000 }
  if (client === "openai") return new OpenAI({ ...shared, apiKey: key, baseURL: `${address}/v1` })
  return new Anthropic({ ...shared, baseURL: address, ...(auth === "bearer" ? { authToken: key, apiKey: null } : { apiKey: key, authToken: null }) })
}

/** Calls the method of that path without its types: tests often send what no type allows. */
const invoke = (client: object, path: string, ...words: ReadonlyArray<unknown>): unknown => {
  let owner: unknown
  let resolved: unknown = client
  for (const name of path.split(".")) {
    owner = resolved
    resolved = typeof owner === "object" && owner !== null ? Reflect.get(owner, name) : undefined
  }
  if (typeof resolved !== "function") throw new Error(`the client has no ${path}`)
  return Reflect.apply(resolved, owner, words)
}

const member = (value: unknown, name: string): unknown => (typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined)
const textOf = (value: unknown) => (typeof value === "string" ? value : null)

const familyOf = (error: object): ReadonlyArray<string> => {
  const names: Array<string> = []
  for (let at: unknown = Reflect.getPrototypeOf(error); typeof at === "object" && at !== null; at = Reflect.getPrototypeOf(at)) {
    const errorClass = member(at, "constructor")
    if (typeof errorClass === "function") names.push(errorClass.name)
  }
  return names
}

const faultOf = (error: unknown) => {
  const status = member(error, "status")
  const family = typeof error === "object" && error !== null ? familyOf(error) : []
  return {
    kind: family[0] ?? typeof error,
    family,
    message: String(member(error, "message")),
    status: typeof status === "number" ? status : null,
    code: textOf(member(error, "code")) ?? textOf(member(error, "errorCode")),
    type: textOf(member(error, "type")),
    param: textOf(member(error, "param")),
    requestId: textOf(member(error, "requestID")),
    body: member(error, "error") ?? null
  }
}

/** The JSON of a value, without what only code sees of it. */
const plain = (value: unknown): unknown => (value === undefined ? null : JSON.parse(JSON.stringify(value)))

/** An object with a word, as `Answer` in `clients.py`. */
const answerFormat = makeParseableResponseFormat(
  {
    type: "json_schema",
    json_schema: {
      name: "Answer",
      strict: true,
      schema: { type: "object", properties: { word: { type: "string" } }, required: ["word"], additionalProperties: false }
    }
  },
  (text) => JSON.parse(text)
)

const isItems = (value: unknown): value is AsyncIterable<unknown> => typeof value === "object" && value !== null && Symbol.asyncIterator in value

const finals: Readonly<Record<string, string>> = {
  "chat.completions": "finalChatCompletion",
  responses: "finalResponse",
  messages: "finalMessage"
}

/** Asks through the clients that JavaScript has. When `signal` is aborted, a use of the kind `cancel` is. */
export const useJavaScript = (use: Use, signal?: AbortSignal): Effect.Effect<Seen> =>
  Effect.promise(async () => {
    const { args: named = {}, call, extra = {}, how = "whole", leave = 0, words = [] } = use
    const args = { ...named, ...extra, ...(named.response_format === "Answer" ? { response_format: answerFormat } : {}) }
    const items: Array<unknown> = []
    let value: unknown = null
    let requestId: unknown = null
    let error: unknown = null
    try {
      const client = clientOf(use)
      const streamed = how === "stream"
      const callArguments = words.length > 0 ? words : [streamed ? { ...args, stream: true } : args]
      if (how === "helper") {
        const stream = invoke(client, `${call}.stream`, args)
        if (!isItems(stream)) throw new Error("the helper gives no items")
        for await (const item of stream) items.push(item)
        const final = finals[call]
        if (final !== undefined) value = await invoke(stream, final)
      } else {
        const pending = invoke(client, call, ...callArguments, ...(signal === undefined ? [] : [{ signal }]))
        if (streamed) {
          const withResponse = await invoke(Object(pending), "withResponse")
          requestId = member(withResponse, "request_id")
          const stream = member(withResponse, "data")
          if (!isItems(stream)) throw new Error("the stream gives no items")
          for await (const item of stream) {
            items.push(item)
            use.onItem?.(items.length)
            if (items.length === leave) {
              invoke(Object(stream), "controller.abort")
              break
            }
          }
        } else if (how === "list") {
          const page = await pending
          if (!isItems(page)) throw new Error("the list gives no items")
          for await (const item of page) items.push(item)
          value = items.splice(0)
        } else {
          value = await pending
          requestId = member(value, "_request_id")
        }
      }
    } catch (cause) {
      error = faultOf(cause)
    }
    return decodeSeen({ value: plain(value), items: plain(items), error: plain(error), requestId: textOf(requestId) })
  })
