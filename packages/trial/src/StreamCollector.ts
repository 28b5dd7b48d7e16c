import { type CompletionChoice, type CompletionChunk, type CompletionCounts, dataOfLine, reasoningOf, streamEnd, type ToolCallPiece } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { decodeFrame, type StreamedAnswer, Unexpected } from "./engineAnswers.ts"

interface PartialCall {
  readonly id: string | null
  readonly name: string
  readonly arguments: string
}

/** Collects the frames of one stream. Times are monotonic milliseconds. */
export class StreamCollector {
  private readonly sentAt: number
  private readonly arrivals: Array<number> = []
  private content = ""
  private reasoning = ""
  private roles = 0
  private finishReasons = 0
  private usageFrames = 0
  private doneFrames = 0
  private framesAfterDone = 0
  private finishReason: string | null = null
  private usage: CompletionCounts | null = null
  private unreadableFrames = 0
  private readonly calls = new Map<number, PartialCall>()

  constructor(sentAt: number) {
    this.sentAt = sentAt
  }

  take(line: string, at: number): void {
    const data = dataOfLine(line)
    if (data === null) return
    if (this.doneFrames > 0) this.framesAfterDone++
    if (data === streamEnd) {
      this.doneFrames++
      return
    }
    const frame = decodeFrame(data)
    if (Option.isNone(frame)) {
      this.unreadableFrames++
      return
    }
    this.takeUsage(frame.value)
    const choice = frame.value.choices[0]
    if (choice === undefined) return
    this.takePieces(choice, at)
    this.takeEnd(choice)
  }

  private takeUsage({ choices, usage }: CompletionChunk): void {
    if (usage == null || choices.length > 0) return
    this.usage = usage
    this.usageFrames++
  }

  private takePieces({ delta, text }: CompletionChoice, at: number): void {
    const piece = delta?.content ?? text ?? ""
    const thought = reasoningOf(delta)
    const callPieces = delta?.tool_calls ?? []
    if (piece !== "" || thought !== "" || callPieces.length > 0) this.arrivals.push(at)
    this.takeCalls(callPieces)
    this.content += piece
    this.reasoning += thought
  }

  private takeCalls(pieces: ReadonlyArray<ToolCallPiece>): void {
    for (const [position, { function: part, id, index }] of pieces.entries()) {
      const number = index ?? position
      const call = this.calls.get(number) ?? { id: null, name: "", arguments: "" }
      this.calls.set(number, { id: id ?? call.id, name: call.name + (part?.name ?? ""), arguments: call.arguments + (part?.arguments ?? "") })
    }
  }

  private takeEnd({ delta, finish_reason }: CompletionChoice): void {
    if (delta?.role != null) this.roles++
    if (finish_reason == null) return
    this.finishReason = finish_reason
    this.finishReasons++
  }

  answer(): Effect.Effect<StreamedAnswer, Unexpected> {
    const { arrivals, content, finishReason, finishReasons, reasoning, roles, sentAt, usage, usageFrames } = this
    if (this.unreadableFrames > 0) return Effect.fail(new Unexpected({ detail: `${this.unreadableFrames} unreadable frames` }))
    if (usage === null) return Effect.fail(new Unexpected({ detail: "a stream without a usage chunk" }))
    return Effect.succeed({
      content,
      reasoning,
      finishReason,
      usage,
      sentAt,
      arrivals,
      roles,
      finishReasons,
      usageFrames,
      toolCalls: [...this.calls.values()].map(({ arguments: text, id, name }) => ({ id, function: { name, arguments: text } })),
      callNumbers: [...this.calls.keys()],
      done: this.doneFrames === 1 && this.framesAfterDone === 0
    })
  }
}
