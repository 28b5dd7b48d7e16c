import { EventEmitter } from "node:events"

/** Flow control of the connection that the answer arrives on. */
export interface AnswerSource {
  readonly pause: () => void
  readonly resume: () => void
  readonly hangUp: () => void
}

/** Bytes buffered before the connection is paused. */
const mayWait = 65_536

/**
 * An engine's answer: its status and its body. It emits nothing before `resume` is called. `end` follows a complete
 * body, and `close` is always emitted. It is not a Node stream, because a stream costs more than all other work on an
 * answer.
 */
export class EngineAnswer extends EventEmitter<{ readonly data: [Buffer]; readonly end: []; readonly close: [] }> {
  readonly statusCode: number
  /** Whether the complete body has arrived. */
  complete = false
  /** Whether no further `data` or `end` follows. */
  destroyed = false
  #flowing = false
  #isNotifying = false
  #waiting: Array<Buffer> = []
  #size = 0
  readonly #source: AnswerSource

  constructor(statusCode: number, source: AnswerSource) {
    super()
    this.statusCode = statusCode
    this.#source = source
  }

  /** Adds the next part of the body. */
  push(bytes: Buffer) {
    if (this.destroyed || bytes.length === 0) return
    if (this.#flowing && !this.#isNotifying) {
      this.emit("data", bytes)
      return
    }
    this.#waiting.push(bytes)
    this.#size += bytes.length
    if (this.#size > mayWait && !this.complete) this.#source.pause()
  }

  /** The complete body was pushed. */
  finish() {
    this.complete = true
    if (this.#flowing && !this.#isNotifying) this.#end()
  }

  /** The connection broke off. Buffered data is dropped. */
  fail() {
    if (!this.destroyed) this.#close()
  }

  pause() {
    this.#flowing = false
    if (!this.complete) this.#source.pause()
  }

  /** Emits buffered data in the next tick, after the caller has added its listeners. */
  resume() {
    if (this.#flowing || this.destroyed) return
    this.#flowing = true
    if (!this.complete) this.#source.resume()
    if (this.#isNotifying) return
    this.#isNotifying = true
    process.nextTick(() => this.#notify())
  }

  /** Closes the connection, unless the body is complete. */
  destroy() {
    if (this.destroyed) return
    this.destroyed = true
    this.#waiting = []
    if (!this.complete) this.#source.hangUp()
    // The caller may have other pending events, which it must handle first.
    process.nextTick(() => this.emit("close"))
  }

  #notify() {
    for (let next = this.#waiting.shift(); next !== undefined && !this.destroyed; next = this.#waiting.shift()) {
      this.#size -= next.length
      this.emit("data", next)
      if (this.#flowing) continue
      this.#isNotifying = false
      return
    }
    this.#isNotifying = false
    if (this.complete && !this.destroyed) this.#end()
  }

  #end() {
    this.emit("end")
    if (!this.destroyed) this.#close()
  }

  #close() {
    this.destroyed = true
    this.#waiting = []
    this.emit("close")
  }
}
