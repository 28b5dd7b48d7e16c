import { Effect } from "effect"
import type { StreamReader } from "./dialects/Dialect.ts"
import type { EventStream } from "./EventStream.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import { FrameSplitter } from "./FrameSplitter.ts"
import type { Progress } from "./Progress.ts"
import type { RequestAbort, Signal } from "./RequestAbort.ts"
import type { Pulse } from "./routing/EngineState.ts"

/** How an engine's stream ended. The terminal frame is sent later, after the record is committed. */
export type Relayed =
  /** Also without `[DONE]` if the answer was complete. */
  | { readonly _tag: "Done" }
  /** The engine reported an error. `first`: before any frame; the same in `Broken` and `Silent`. */
  | { readonly _tag: "Failed"; readonly payload: string; readonly first: boolean }
  | { readonly _tag: "Broken"; readonly first: boolean }
  /** A frame is too large. */
  | { readonly _tag: "TooLarge" }
  | { readonly _tag: "Silent"; readonly first: boolean }
  /** `signal` was aborted. */
  | { readonly _tag: "Aborted" }

export interface RelayOptions {
  readonly upstream: EngineAnswer
  readonly stream: EventStream
  readonly progress: Progress
  readonly reader: StreamReader
  /** Updated on each sign of life of the engine. */
  readonly pulse: Pulse
  /** Called at the first frame, with its usage if it had one. After it, no other engine gets the request. */
  readonly begun: () => void
  /**
   * Called once at the first content, or at an end without content. Earlier frames do not prove that the engine works.
   */
  readonly answered: () => void
  /** Applied to the text of each frame before it is sent. */
  readonly rename: (text: string) => string
  /** Milliseconds left until the first frame must arrive. */
  readonly firstFrameMillis: number
  /** Milliseconds of silence within the stream after which the engine counts as dead. */
  readonly silenceMillis: number
  /** Milliseconds left for the stream in total. */
  readonly streamMillis: number
  /** Whether the usage is known well enough to stop the engine once the caller has left. */
  readonly isMetered: () => boolean
  /** A caller that left gets no more frames, but they are read until the usage is known. */
  readonly requestAbort: RequestAbort
  /** Stops the engine's work. */
  readonly signal: Signal
}

/** Relays an engine's event stream to the caller frame by frame, no faster than the caller reads. */
export const relay = ({
  answered,
  begun,
  requestAbort,
  firstFrameMillis,
  isMetered,
  progress,
  pulse,
  reader,
  rename,
  signal,
  silenceMillis,
  stream,
  upstream,
  streamMillis
}: RelayOptions): Effect.Effect<Relayed> =>
  Effect.callback((resume) => {
    const { response } = stream
    const splitter = new FrameSplitter()
    const startedAt = performance.now()
    let lastFrameAt = startedAt
    let first = true
    let waiting = false

    const settle = (end: Relayed) => {
      clearInterval(timer)
      upstream.off("data", onData).off("end", onEnd).off("close", onEnd)
      response.off("drain", onDrain)
      signal.removeEventListener("abort", onAbort)
      requestAbort.removeEventListener("abort", onRequestAbort)
      // Bytes after `[DONE]` are read so that the connection can be reused.
      if (end._tag === "Done") {
        upstream.resume()
        if (progress.firstContentAt === null) answered()
      } else upstream.destroy()
      resume(Effect.succeed(end))
    }
    /** Sends frames to the caller. Returns how the stream ended, or null if it continues. */
    const take = (frames: ReadonlyArray<string>): Relayed | null => {
      let out = ""
      let end: Relayed | null = null
      let hasContent = false
      for (const text of frames) {
        const frame = reader.read(text)
        if (frame._tag === "Comment") continue
        if (frame._tag === "Done") end = { _tag: "Done" }
        else if (frame._tag === "Failed") end = { _tag: "Failed", payload: frame.payload, first }
        else if (frame._tag === "Broken") end = { _tag: "Broken", first }
        if (frame._tag !== "Chunk" && frame._tag !== "Done") break
        if (frame.usage !== null) progress.storeUsage(frame.usage)
        if (first) begun()
        first = false
        progress.finishReason = frame.finishReason ?? progress.finishReason
        if (frame._tag === "Done") break
        if (frame.text !== null && !requestAbort.aborted) out += rename(frame.text)
        if (frame.hasContent) {
          hasContent = true
          progress.contentFrames++
        }
      }
      if (out !== "" && !stream.write(out)) {
        waiting = true
        upstream.pause()
      }
      if (hasContent) {
        if (progress.firstContentAt === null) answered()
        if (!requestAbort.aborted) progress.recordContent(performance.now())
      }
      return end
    }
    const onDrain = () => {
      waiting = false
      lastFrameAt = performance.now()
      upstream.resume()
    }
    const onData = (chunk: Buffer) => {
      const frames = splitter.push(chunk)
      if (frames === null) return settle({ _tag: "TooLarge" })
      if (frames.length === 0) return
      lastFrameAt = performance.now()
      pulse.at = lastFrameAt
      const end = take(frames)
      if (end !== null) settle(end)
      else if (requestAbort.aborted && isMetered()) onAbort()
    }
    const onEnd = () => settle(upstream.complete && reader.finished ? { _tag: "Done" } : { _tag: "Broken", first })
    const onAbort = () => settle({ _tag: "Aborted" })
    const onRequestAbort = () => {
      if (isMetered()) onAbort()
      else if (waiting) onDrain()
    }
    const checkSilence = () => {
      const now = performance.now()
      if (now - startedAt > streamMillis || (!waiting && now - lastFrameAt > (first ? firstFrameMillis : silenceMillis))) settle({ _tag: "Silent", first })
    }
    const timer = setInterval(checkSilence, Math.min(1_000, Math.max(1, Math.ceil(Math.min(firstFrameMillis, silenceMillis, streamMillis) / 4))))

    if (signal.aborted) return onAbort()
    // The stream may have broken off while the row was committed; then no more events follow.
    if (upstream.destroyed) return onEnd()
    signal.addEventListener("abort", onAbort)
    requestAbort.addEventListener("abort", onRequestAbort)
    response.on("drain", onDrain)
    upstream.on("data", onData).on("end", onEnd).on("close", onEnd).resume()
    return Effect.sync(onAbort)
  })
