import type { IncomingMessage, ServerResponse } from "node:http"
import type { Usage } from "@seatrial/domain"
import { Effect } from "effect"
import { FrameSplitter, readFrame } from "./frames.ts"

/** How an engine's stream ended, and what was seen of it. The terminal frame is not sent yet: that waits for the record. */
export interface Relayed {
  readonly end: "done" | "broken" | "silent" | "client_gone"
  /** Whether the head, and with it the status 200, went to the caller. */
  readonly started: boolean
  readonly usage: Usage | null
  /** Frames with content that went to the caller: a lower bound of the output where the engine told no usage. */
  readonly contentFrames: number
  readonly finishReason: string | null
  /** `performance.now()` when the first content was handed over. */
  readonly firstContentAt: number | null
}

export interface RelayOptions {
  readonly upstream: IncomingMessage
  readonly response: ServerResponse
  readonly wantsUsage: boolean
  /** Milliseconds of silence after which a comment keeps the connection alive. */
  readonly heartbeat: number
  /** Milliseconds of silence after which the engine counts as dead. */
  readonly silence: number
  /** Milliseconds that a caller may take to read what waits for it. */
  readonly writeStall: number
  readonly onUsage: (usage: Usage) => void
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no"
}

const endings = new Set(["stop", "length", "tool_calls", "content_filter"])

/** Sends the head of a stream, where it has not gone out yet. */
export const startStream = (response: ServerResponse): void => {
  if (response.headersSent) return
  response.writeHead(200, streamHeaders)
  response.flushHeaders()
}

/**
 * Passes an engine's event stream to the caller frame by frame, no faster than the caller reads; the status is held until the engine's first frame. Interruption
 * closes the connection to the engine.
 */
export const relay = ({ heartbeat, onUsage, response, silence, upstream, wantsUsage, writeStall }: RelayOptions): Effect.Effect<Relayed> =>
  Effect.callback((resume) => {
    const splitter = new FrameSplitter()
    let usage: Usage | null = null
    let contentFrames = 0
    let finishReason: string | null = null
    let firstContentAt: number | null = null
    let lastFrameAt = performance.now()
    let lastWriteAt = lastFrameAt
    let stalledSince: number | null = null

    const settle = (end: Relayed["end"]) => {
      clearInterval(timer)
      upstream.off("data", onData).off("end", onEnd).off("error", onEnd)
      response.off("close", onClose).off("drain", onDrain)
      if (end === "done") upstream.resume()
      else upstream.destroy()
      resume(Effect.succeed({ end, started: response.headersSent, usage, contentFrames, finishReason, firstContentAt }))
    }
    const write = (text: string) => {
      startStream(response)
      lastWriteAt = performance.now()
      if (!response.write(text)) {
        stalledSince ??= lastWriteAt
        upstream.pause()
      }
    }
    const onDrain = () => {
      stalledSince = null
      upstream.resume()
    }
    const onData = (chunk: Buffer) => {
      const frames = splitter.push(chunk)
      if (frames === null) return settle("broken")
      lastFrameAt = performance.now()
      for (const text of frames) {
        const frame = readFrame(text, wantsUsage)
        if (frame._tag === "Comment") continue
        if (frame._tag === "Broken") return settle("broken")
        if (frame._tag === "Done") return settle(finishReason !== null && endings.has(finishReason) ? "done" : "broken")
        if (frame.usage !== null) {
          usage = frame.usage
          onUsage(usage)
        }
        finishReason = frame.finishReason ?? finishReason
        if (frame.text !== null) write(frame.text)
        if (frame.hasContent) {
          contentFrames++
          firstContentAt ??= performance.now()
        }
      }
    }
    const onEnd = () => settle("broken")
    const onClose = () => settle("client_gone")
    const timer = setInterval(
      () => {
        const now = performance.now()
        if (stalledSince !== null) {
          if (now - stalledSince > writeStall) settle("client_gone")
        } else if (now - lastFrameAt > silence) settle("silent")
        else if (now - lastWriteAt > heartbeat) write(": keep-alive\n\n")
      },
      Math.min(heartbeat, 1_000)
    )

    if (response.destroyed) return settle("client_gone")
    response.on("close", onClose).on("drain", onDrain)
    upstream.on("data", onData).on("end", onEnd).on("error", onEnd)
    return Effect.sync(() => {
      clearInterval(timer)
      upstream.destroy()
    })
  })

/** Reads a whole answer of at most `limit` bytes; null where it breaks off, is larger, or takes longer than `timeout` milliseconds. */
export const readWhole = (upstream: IncomingMessage, limit: number, timeout: number): Effect.Effect<Buffer | null> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    const settle = (body: Buffer | null) => {
      clearTimeout(timer)
      if (body === null) upstream.destroy()
      resume(Effect.succeed(body))
    }
    const timer = setTimeout(() => settle(null), timeout)
    upstream.on("data", (chunk: Buffer) => {
      length += chunk.length
      if (length > limit) settle(null)
      else chunks.push(chunk)
    })
    upstream.once("end", () => settle(upstream.complete ? Buffer.concat(chunks) : null))
    upstream.once("error", () => settle(null))
    upstream.once("close", () => settle(null))
    return Effect.sync(() => {
      clearTimeout(timer)
      upstream.destroy()
    })
  })
