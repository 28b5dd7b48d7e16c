import { EventEmitter } from "node:events"

/** What an answer needs of the connection that it comes on. */
export interface AnswerSource {
  readonly pause: () => void
  readonly resume: () => void
  readonly hangUp: () => void
}

/** Bytes that may wait for whoever reads the answer, before no more are taken from the connection. */
const mayWait = 65_536

/**
 * An engine's answer: its status, and its body as it comes. Nothing is told before `resume` is called; `end` follows the last of a whole body, and `close`
 * comes in any case. It is no stream: one of those costs more than all that is done with an answer.
 */
export class EngineAnswer extends EventEmitter<{ readonly data: [Buffer]; readonly end: []; readonly close: [] }> {
  readonly statusCode: number
  /** Whether all of the body has come. */
  complete = false
  /** Whether nothing of it will be told any more. */
  destroyed = false
  #flowing = false
  #telling = false
  #waiting: Array<Buffer> = []
  #size = 0
  readonly #source: AnswerSource

  constructor(statusCode: number, source: AnswerSource) {
    super()
    this.statusCode = statusCode
    this.#source = source
  }

  /** The next part of the body. */
  push(bytes: Buffer) {
    if (this.destroyed || bytes.length === 0) return
    if (this.#flowing && !this.#telling) {
      this.emit("data", bytes)
      return
    }
    this.#waiting.push(bytes)
    this.#size += bytes.length
    if (this.#size > mayWait && !this.complete) this.#source.pause()
  }

  /** All of the body was pushed. */
  finish() {
    this.complete = true
    if (this.#flowing && !this.#telling) this.#end()
  }

  /** The connection broke off: what was not told yet is lost. */
  fail() {
    if (!this.destroyed) this.#close()
  }

  pause() {
    this.#flowing = false
    if (!this.complete) this.#source.pause()
  }

  /** Tells what there is once whoever calls has said what it listens for. */
  resume() {
    if (this.#flowing || this.destroyed) return
    this.#flowing = true
    if (!this.complete) this.#source.resume()
    if (this.#telling) return
    this.#telling = true
    process.nextTick(() => this.#tell())
  }

  /** Hangs up, unless all has come. */
  destroy() {
    if (this.destroyed) return
    this.destroyed = true
    this.#waiting = []
    if (!this.complete) this.#source.hangUp()
    // Whoever calls may listen for other reasons too, and is to hear of those first.
    process.nextTick(() => this.emit("close"))
  }

  #tell() {
    for (let next = this.#waiting.shift(); next !== undefined && !this.destroyed; next = this.#waiting.shift()) {
      this.#size -= next.length
      this.emit("data", next)
      if (this.#flowing) continue
      this.#telling = false
      return
    }
    this.#telling = false
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
