import { type Dispatcher, errors } from "undici"
import type { EngineCall } from "../EngineClient.ts"
import { EngineAnswer } from "./EngineAnswer.ts"

/**
 * Why no answer came. `refused`: no connection. `stale`: a kept connection closed at once, most likely before the
 * engine read the request. `broken`: the connection closed after the engine may have begun to work. `late`: no response
 * head in time. `aborted`: the signal was aborted.
 */
export type UnreachableReason = "refused" | "stale" | "broken" | "late" | "aborted"

interface Listener {
  readonly answered: (answer: EngineAnswer) => void
  readonly failed: (reason: UnreachableReason) => void
}

/** Milliseconds in which a kept connection fails if the other end had closed it before. */
const staleWithin = 1_000

/** Created once: a stack trace for each abort costs more than the abort itself. */
const hungUp = new Error("The gateway hung up.")

/** One request to an engine, from its dispatch to the end of its answer. */
export class EngineExchange implements Dispatcher.DispatchHandler {
  readonly #call: EngineCall
  readonly #listener: Listener
  readonly #startedAt = performance.now()
  readonly #limit: NodeJS.Timeout
  /** Set when the request is sent, which requires a connection. */
  #control: Dispatcher.DispatchController | undefined
  #answer: EngineAnswer | undefined
  /** Whether the listener was called. */
  #isSettled = false

  constructor(call: EngineCall, listener: Listener) {
    this.#call = call
    this.#listener = listener
    this.#limit = setTimeout(() => this.#giveUp("late"), Math.max(1, Math.ceil(call.timeout)))
    call.signal.addEventListener("abort", this.#onAbort)
  }

  /** Closes the connection of a request that has no answer. */
  abort(): void {
    this.#giveUp("aborted")
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#control = controller
    if (this.#isSettled) this.#hangUp()
    else this.#call.onSent?.()
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (this.#isSettled || status < 200) return
    this.#isSettled = true
    clearTimeout(this.#limit)
    const answer = new EngineAnswer(status, { pause: () => controller.pause(), resume: () => controller.resume(), hangUp: () => this.#hangUp() })
    this.#answer = answer
    answer.once("close", () => this.#call.signal.removeEventListener("abort", this.#onAbort))
    this.#listener.answered(answer)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#answer?.push(chunk)
  }

  onResponseEnd(): void {
    this.#answer?.finish()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.#answer !== undefined) this.#answer.fail()
    else this.#fail(this.#reasonOf(error))
  }

  /**
   * Most likely the engine had closed the kept connection before. A request that crashed the engine at once looks the
   * same.
   */
  #reasonOf(error: Error): UnreachableReason {
    if (this.#control === undefined) return "refused"
    const isReused = error instanceof errors.SocketError && (error.socket?.bytesRead ?? 0) > 0
    return isReused && performance.now() - this.#startedAt < staleWithin ? "stale" : "broken"
  }

  readonly #onAbort = (): void => {
    if (this.#answer === undefined) this.#giveUp("aborted")
    else this.#answer.destroy()
  }

  #giveUp(reason: UnreachableReason): void {
    this.#fail(reason)
    this.#hangUp()
  }

  #fail(reason: UnreachableReason): void {
    if (this.#isSettled) return
    this.#isSettled = true
    clearTimeout(this.#limit)
    this.#call.signal.removeEventListener("abort", this.#onAbort)
    this.#listener.failed(reason)
  }

  #hangUp(): void {
    this.#control?.abort(hungUp)
  }
}
