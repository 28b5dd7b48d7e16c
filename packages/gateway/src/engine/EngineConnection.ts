import { connect, type Socket } from "node:net"
import { AnswerParser } from "./AnswerParser.ts"
import { EngineAnswer } from "./EngineAnswer.ts"

/** Who waits for an answer's head. */
export interface Asker {
  readonly answered: (answer: EngineAnswer) => void
  /** The connection ended before. */
  readonly lost: () => void
  readonly connected: () => void
}

export interface ConnectionOptions {
  readonly host: string
  readonly port: number
  /** The answer has come to its end, and another request may follow. */
  readonly onFree: (connection: EngineConnection) => void
  readonly onClosed: (connection: EngineConnection) => void
}

/** One kept connection to an engine, with one request at a time. */
export class EngineConnection {
  readonly #options: ConnectionOptions
  readonly #parser = new AnswerParser()
  readonly #socket: Socket
  #asker: Asker | null = null
  #answer: EngineAnswer | null = null
  #failed = false
  isConnected = false
  /** `performance.now()` when it was needed no more. */
  freeSince = 0

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#socket = connect({ host: options.host, port: options.port, noDelay: true })
    this.#socket
      .on("connect", () => {
        this.isConnected = true
        this.#asker?.connected()
      })
      .on("data", (bytes: Buffer) => this.#read(bytes))
      .on("error", () => {
        this.#failed = true
      })
      .on("close", () => this.#closed())
  }

  /** Sends a whole request. */
  send(request: string, encoding: "latin1" | "utf8", asker: Asker) {
    this.#asker = asker
    this.#socket.write(request, encoding)
  }

  destroy() {
    this.#failed = true
    this.#socket.destroy()
  }

  #read(bytes: Buffer) {
    // Nobody has asked for anything.
    if (this.#asker === null && this.#answer === null) return this.destroy()
    const body = this.#parser.push(bytes)
    if (body === false) return this.destroy()
    const asker = this.#asker
    if (asker !== null && !this.#parser.awaitsHead) {
      this.#asker = null
      this.#answer = new EngineAnswer(this.#parser.status, {
        pause: () => this.#socket.pause(),
        resume: () => this.#socket.resume(),
        hangUp: () => this.destroy()
      })
      asker.answered(this.#answer)
    }
    this.#answer?.push(body)
    if (this.#parser.over) this.#end()
  }

  #end() {
    const answer = this.#answer
    this.#answer = null
    this.#parser.reset()
    if (!this.#parser.keepAlive || this.#failed) this.#socket.destroy()
    else {
      if (this.#socket.isPaused()) this.#socket.resume()
      this.#options.onFree(this)
    }
    answer?.finish()
  }

  #closed() {
    const asker = this.#asker
    const answer = this.#answer
    this.#asker = null
    this.#answer = null
    this.#options.onClosed(this)
    asker?.lost()
    if (answer === null) return
    if (this.#parser.endsWithConnection && !this.#failed) answer.finish()
    else answer.fail()
  }
}
