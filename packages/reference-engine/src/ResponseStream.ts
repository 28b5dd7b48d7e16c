import { randomUUID } from "node:crypto"
import type { ServerResponse } from "node:http"
import { eventFrame } from "@seatrial/domain"
import type { ReportedToken } from "./AnswerText.ts"
import type { AnswerParts } from "./reading.ts"
import type { Seams } from "./Seams.ts"
import { openEventStream } from "./sending.ts"

interface ReasoningItem {
  readonly type: "reasoning"
  readonly id: string
  text: string
}

interface MessageItem {
  readonly type: "message"
  readonly id: string
  text: string
  tokens: Array<ReportedToken>
}

interface CallItem {
  readonly type: "function_call"
  readonly id: string
  readonly call_id: string
  readonly name: string
  arguments: string
}

/** A part of the answer: reasoning, text or one call. */
type Item = ReasoningItem | MessageItem | CallItem

type ItemStatus = "in_progress" | "completed" | "incomplete"

const thoughtOf = (text: string) => ({ type: "reasoning_text", text })

const short = () => randomUUID().replaceAll("-", "").slice(0, 24)

interface StreamOptions {
  readonly isStream: boolean
  readonly sendsEvent: Seams["sendsEvent"]
  /** The log-probabilities of tokens, as the request wants them. */
  readonly logprobsOf: (tokens: ReadonlyArray<ReportedToken>) => ReadonlyArray<object>
}

/** Collects the items of a response, and writes them as events if the request streams. */
export class ResponseStream {
  private readonly response: ServerResponse
  private readonly options: StreamOptions
  private readonly items: Array<Item> = []
  private sequence = 0
  isOpen = false

  constructor(response: ServerResponse, options: StreamOptions) {
    this.response = response
    this.options = options
  }

  event(type: string, data: object) {
    const { isStream, sendsEvent } = this.options
    if (isStream && !this.response.destroyed && sendsEvent?.(type) !== false)
      this.response.write(eventFrame(type, { sequence_number: this.sequence++, ...data }))
  }

  /** Starts the stream, if there is one and it has not started. */
  open(started: object) {
    if (this.isOpen || !this.options.isStream) return
    this.isOpen = true
    openEventStream(this.response)
    this.event("response.created", { response: started })
    this.event("response.in_progress", { response: started })
  }

  write({ calls, content, reasoning }: AnswerParts, tokens: ReadonlyArray<ReportedToken>) {
    if (reasoning !== "") this.writeReasoning(reasoning)
    if (content !== "") this.writeText(content, tokens)
    for (const call of calls) this.writeCall(call)
  }

  /** Ends the last item. Without any, the answer is an empty message. */
  finish(status: "completed" | "incomplete") {
    if (this.items.length === 0) this.start({ type: "message", id: `msg_${short()}`, text: "", tokens: [] })
    this.close(status)
  }

  /** The items of the ended response. `lastStatus`: of the last one. */
  output(lastStatus: ItemStatus): ReadonlyArray<object> {
    return this.items.map((item, at) => this.itemOf(item, at === this.items.length - 1 ? lastStatus : "completed"))
  }

  private writeReasoning(text: string) {
    const last = this.items.at(-1)
    const item = last?.type === "reasoning" ? last : this.start({ type: "reasoning", id: `rs_${short()}`, text: "" })
    item.text += text
    this.event("response.reasoning_text.delta", { ...this.at(item), content_index: 0, delta: text })
  }

  private writeText(text: string, tokens: ReadonlyArray<ReportedToken>) {
    const last = this.items.at(-1)
    const item = last?.type === "message" ? last : this.start({ type: "message", id: `msg_${short()}`, text: "", tokens: [] })
    item.text += text
    item.tokens.push(...tokens)
    this.event("response.output_text.delta", { ...this.at(item), content_index: 0, delta: text, logprobs: this.options.logprobsOf(tokens) })
  }

  /** Writes a part of a call. The first part has an ID, and begins an item. */
  private writeCall({ function: part, id: call_id }: AnswerParts["calls"][number]) {
    const last = this.items.at(-1)
    const item =
      call_id === undefined && last !== undefined
        ? last
        : this.start({ type: "function_call", id: `fc_${short()}`, call_id: call_id ?? "", name: part.name ?? "", arguments: "" })
    if (item.type !== "function_call" || part.arguments === "") return
    item.arguments += part.arguments
    this.event("response.function_call_arguments.delta", { ...this.at(item), delta: part.arguments })
  }

  private start<I extends Item>(item: I): I {
    this.close("completed")
    this.items.push(item)
    this.event("response.output_item.added", { output_index: this.items.length - 1, item: this.itemOf(item, "in_progress") })
    if (item.type === "message") this.event("response.content_part.added", { ...this.at(item), content_index: 0, part: this.partOf("", []) })
    if (item.type === "reasoning") this.event("response.content_part.added", { ...this.at(item), content_index: 0, part: thoughtOf("") })
    return item
  }

  private close(status: "completed" | "incomplete") {
    const item = this.items.at(-1)
    if (item === undefined) return
    this.closeContent(item)
    this.event("response.output_item.done", { output_index: this.items.indexOf(item), item: this.itemOf(item, status) })
  }

  private closeContent(item: Item) {
    const at = this.at(item)
    switch (item.type) {
      case "reasoning":
        this.event("response.reasoning_text.done", { ...at, content_index: 0, text: item.text })
        this.event("response.content_part.done", { ...at, content_index: 0, part: thoughtOf(item.text) })
        break
      case "message":
        this.event("response.output_text.done", { ...at, content_index: 0, text: item.text, logprobs: this.options.logprobsOf(item.tokens) })
        this.event("response.content_part.done", { ...at, content_index: 0, part: this.partOf(item.text, item.tokens) })
        break
      case "function_call":
        this.event("response.function_call_arguments.done", { ...at, name: item.name, arguments: item.arguments })
    }
  }

  private at(item: Item) {
    return { item_id: item.id, output_index: this.items.indexOf(item) }
  }

  private partOf(text: string, tokens: ReadonlyArray<ReportedToken>) {
    return { type: "output_text", text, annotations: [], logprobs: this.options.logprobsOf(tokens) }
  }

  private itemOf(item: Item, status: ItemStatus): object {
    if (item.type === "function_call") return { ...item, status }
    if (item.type === "reasoning") {
      const { id, text, type } = item
      return { id, type, summary: [], ...(status === "in_progress" ? {} : { content: [thoughtOf(text)] }), status }
    }
    const { id, text, tokens, type } = item
    return { id, type, role: "assistant", status, content: status === "in_progress" ? [] : [this.partOf(text, tokens)] }
  }
}
