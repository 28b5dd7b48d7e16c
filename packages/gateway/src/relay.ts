import { Effect, Exit } from "effect"
import type { BodyShare } from "./BodyBudget.ts"
import type { Frame, ReadFrame, StreamReader } from "./dialects/Dialect.ts"
import type { EventStream } from "./EventStream.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import { FrameSplitter } from "./FrameSplitter.ts"
import type { Progress } from "./Progress.ts"
import type { RequestAbort, Signal } from "./RequestAbort.ts"
import type { Refusal } from "./refusals.ts"
import type { Pulse } from "./routing/EngineState.ts"
import { largeBody } from "./vocabulary/LargeBodies.ts"
import type { LargeBodyUnread } from "./vocabulary/LargeBodyLane.ts"

/** How an engine's stream ended. The terminal frame is sent later, after the record is committed. */
export type Relayed =
  /** Also without `[DONE]` if the answer was complete. */
  | { readonly _tag: "Done" }
  /** The engine reported an error. `first`: before any frame; the same in `Broken` and `Silent`. */
  | { readonly _tag: "Failed"; readonly payload: string; readonly first: boolean }
  | { readonly _tag: "Broken"; readonly first: boolean }
  /** A frame is too large. */
  | { readonly _tag: "TooLarge" }
  /** The organization has no memory left for a large frame. */
  | { readonly _tag: "Full"; readonly refusal: Refusal }
  /** No process read a large frame. */
  | { readonly _tag: "Unread"; readonly reason: LargeBodyUnread["reason"] }
  | { readonly _tag: "Silent"; readonly first: boolean }
  /** `signal` was aborted. */
  | { readonly _tag: "Aborted" }

export interface RelayOptions {
  readonly upstream: EngineAnswer
  readonly stream: EventStream
  readonly progress: Progress
  readonly reader: StreamReader
  /** Reads a frame over 64 KiB in another process, because that would block all other requests. */
  readonly readLarge: (frame: string) => Effect.Effect<ReadFrame, LargeBodyUnread>
  /** The memory of a frame over 64 KiB, until the caller has read it. */
  readonly memory: BodyShare
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
  /** Whether the usage so far suffices to stop the engine once the caller has left. */
  readonly isMetered: () => boolean
  /** A caller that left gets no further frames, but they are read until the usage arrives. */
  readonly requestAbort: RequestAbort
  /** Stops the engine's work. */
  readonly signal: Signal
}

/** One stream of an engine on its way to the caller. */
class StreamRelay {
  readonly #options: RelayOptions
  readonly #settled: (end: Relayed) => void
  readonly #splitter = new FrameSplitter()
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  #lastFrameAt = this.#startedAt
  /** Whether no frame has come yet. */
  #isFirst = true
  /** Whether the caller must read before more is sent. */
  #isWaiting = false
  /** Whether another process reads a frame. The engine is not read in this time. */
  #isReading = false
  /** Stops that. */
  #stopReading: (() => void) | undefined
  /** Bytes of memory that are reserved for a large frame. */
  #reserved = 0
  /** The frames of the current chunk for the caller. */
  #out = ""
  #hasContent = false

  constructor(options: RelayOptions, settled: (end: Relayed) => void) {
    const { firstFrameMillis, silenceMillis, streamMillis } = options
    this.#options = options
    this.#settled = settled
    this.#timer = setInterval(this.#checkTimes, Math.min(1_000, Math.max(1, Math.ceil(Math.min(firstFrameMillis, silenceMillis, streamMillis) / 4))))
  }

  start(): void {
    if (this.#options.signal.aborted) this.abort()
    // The stream may have broken off while the row was committed; then no further events follow.
    else if (this.#options.upstream.destroyed) this.#onEnd()
    else this.#listen()
  }

  #listen(): void {
    const { requestAbort, signal, stream, upstream } = this.#options
    signal.addEventListener("abort", this.abort)
    requestAbort.addEventListener("abort", this.#onRequestAbort)
    stream.response.on("drain", this.#onDrain)
    upstream.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onEnd).resume()
  }

  readonly abort = (): void => this.#settle({ _tag: "Aborted" })

  #settle(end: Relayed): void {
    const { answered, progress, requestAbort, signal, stream, upstream } = this.#options
    clearInterval(this.#timer)
    this.#stopReading?.()
    upstream.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onEnd)
    stream.response.off("drain", this.#onDrain)
    signal.removeEventListener("abort", this.abort)
    requestAbort.removeEventListener("abort", this.#onRequestAbort)
    // Bytes after `[DONE]` are read so that the connection can be reused.
    if (end._tag === "Done") {
      upstream.resume()
      if (progress.firstContentAt === null) answered()
    } else upstream.destroy()
    this.#settled(end)
  }

  readonly #onData = (chunk: Buffer): void => {
    const frames = this.#splitter.push(chunk)
    const full = frames === null ? null : this.#reserve(this.#splitter.length)
    if (frames === null) this.#settle({ _tag: "TooLarge" })
    else if (full !== null) this.#settle({ _tag: "Full", refusal: full })
    else if (frames.length > 0) this.#onFrames(frames)
  }

  /** Reserves memory for a frame that is not complete yet, or returns the refusal. */
  #reserve(bytes: number): Refusal | null {
    if (bytes <= Math.max(largeBody, this.#reserved)) return null
    const more = bytes - this.#reserved
    this.#reserved = bytes
    return this.#options.memory.take(more)
  }

  /** Releases the memory of a frame that the caller has read. */
  #release(): void {
    if (this.#reserved === 0 || this.#splitter.length > largeBody) return
    this.#reserved = 0
    this.#options.memory.release()
  }

  #onFrames(frames: ReadonlyArray<string>): void {
    this.#onLife()
    this.#goOn(this.#take(frames))
  }

  /** The engine gave a sign of life, or what it wrote was read. */
  #onLife(): void {
    this.#lastFrameAt = performance.now()
    this.#options.pulse.at = this.#lastFrameAt
  }

  #goOn(end: Relayed | null): void {
    const { isMetered, requestAbort } = this.#options
    if (end !== null) this.#settle(end)
    else if (requestAbort.aborted && isMetered()) this.abort()
  }

  /**
   * Sends frames to the caller. Returns how the stream ended, or null if it continues. After a large frame, the others
   * wait until it was read.
   */
  #take(frames: ReadonlyArray<string>): Relayed | null {
    let end: Relayed | null = null
    let index = 0
    for (const text of frames) {
      index++
      if (text.length > largeBody) {
        this.#readElsewhere(text, frames.slice(index))
        break
      }
      end = this.#takeFrame(this.#options.reader.read(text))
      if (end !== null) break
    }
    this.#send()
    return end
  }

  #readElsewhere(text: string, others: ReadonlyArray<string>): void {
    const { readLarge, upstream } = this.#options
    this.#isReading = true
    upstream.pause()
    this.#stopReading = Effect.runCallback(Effect.result(readLarge(text)), {
      onExit: (exit) => {
        this.#isReading = false
        this.#stopReading = undefined
        if (Exit.hasInterrupts(exit)) return
        if (Exit.isFailure(exit)) this.#settle({ _tag: "Unread", reason: "lost" })
        else if (exit.value._tag === "Failure") this.#settle({ _tag: "Unread", reason: exit.value.failure.reason })
        else this.#onRead(exit.value.success, others)
      }
    })
  }

  #onRead({ ending, frame, state }: ReadFrame, others: ReadonlyArray<string>): void {
    this.#options.reader.restore(state, ending)
    this.#onLife()
    const end = this.#takeFrame(frame) ?? this.#take(others)
    if (end !== null) this.#send()
    this.#goOn(end)
    this.#resume()
  }

  /** Reads the engine again, unless the caller or another process must read first. */
  #resume(): void {
    if (!this.#isWaiting && !this.#isReading) this.#options.upstream.resume()
  }

  #takeFrame(frame: Frame): Relayed | null {
    switch (frame._tag) {
      case "Comment":
        return null
      case "Failed":
        return { _tag: "Failed", payload: frame.payload, first: this.#isFirst }
      case "Broken":
        return { _tag: "Broken", first: this.#isFirst }
      case "Done":
        this.#record(frame)
        return { _tag: "Done" }
      case "Chunk":
        this.#record(frame)
        this.#takeChunk(frame)
        return null
    }
  }

  /** Records the usage and the finish reason of a frame. */
  #record({ finishReason, usage }: Extract<Frame, { readonly _tag: "Chunk" | "Done" }>): void {
    const { begun, progress } = this.#options
    if (usage !== null) progress.storeUsage(usage)
    if (this.#isFirst) begun()
    this.#isFirst = false
    progress.finishReason = finishReason ?? progress.finishReason
  }

  #takeChunk({ hasContent, text }: Extract<Frame, { readonly _tag: "Chunk" }>): void {
    const { progress, rename, requestAbort } = this.#options
    if (text !== null && !requestAbort.aborted) this.#out += rename(text)
    if (!hasContent) return
    this.#hasContent = true
    progress.contentFrames++
  }

  /** Sends what the frames of one chunk have for the caller. */
  #send(): void {
    const { answered, progress, requestAbort, stream, upstream } = this.#options
    if (this.#out !== "" && !stream.write(this.#out)) {
      this.#isWaiting = true
      upstream.pause()
    } else if (!this.#isReading) this.#release()
    this.#out = ""
    if (!this.#hasContent) return
    this.#hasContent = false
    if (progress.firstContentAt === null) answered()
    if (!requestAbort.aborted) progress.recordContent(performance.now())
  }

  readonly #onDrain = (): void => {
    this.#isWaiting = false
    if (!this.#isReading) this.#release()
    this.#lastFrameAt = performance.now()
    this.#resume()
  }

  readonly #onEnd = (): void => {
    const { reader, upstream } = this.#options
    this.#settle(upstream.complete && reader.finished ? { _tag: "Done" } : { _tag: "Broken", first: this.#isFirst })
  }

  readonly #onRequestAbort = (): void => {
    if (this.#options.isMetered()) this.abort()
    else if (this.#isWaiting) this.#onDrain()
  }

  readonly #checkTimes = (): void => {
    const { firstFrameMillis, silenceMillis, streamMillis } = this.#options
    const now = performance.now()
    const isSilent = !this.#isWaiting && !this.#isReading && now - this.#lastFrameAt > (this.#isFirst ? firstFrameMillis : silenceMillis)
    if (isSilent || now - this.#startedAt > streamMillis) this.#settle({ _tag: "Silent", first: this.#isFirst })
  }
}

/** Relays an engine's event stream to the caller frame by frame, no faster than the caller reads. */
export const relay = (options: RelayOptions): Effect.Effect<Relayed> =>
  Effect.callback((resume) => {
    const streamRelay = new StreamRelay(options, (end) => resume(Effect.succeed(end)))
    streamRelay.start()
    return Effect.sync(streamRelay.abort)
  })
