import { connect, type Socket } from "node:net"
import { type ResponseListener, ResponseReader } from "./ResponseReader.ts"

/** What a connection does for one request, and tells of it. */
export interface Exchange extends ResponseListener {
  /** The request, read when there is a connection. */
  readonly request: () => string
  /** The whole body has come. */
  readonly end: () => void
  /** No answer came, or not all of it. `refused`: there was no connection; `stale`: a kept one was closed already; `broken`: it ended after the request had gone out. */
  readonly failed: (reason: "refused" | "stale" | "broken") => void
}

export interface ConnectionTarget {
  readonly host: string
  readonly port: number
  /** Milliseconds until a connection must be open. */
  readonly connectTimeout: number
  /** It could be used again. */
  readonly onIdle: (connection: EngineConnection) => void
  readonly onClose: (connection: EngineConnection) => void
}

/** Milliseconds within which a kept connection shows that its other end had closed it before. */
const staleWithin = 1_000

/** Characters of a request up to which it goes out in one piece of text. */
const inOnePiece = 16_384

/** What is read goes through here, for all connections: nobody keeps these bytes beyond the call. */
const received = Buffer.allocUnsafeSlow(65_536)

/**
 * One connection to an engine, one request at a time, from `node:net` up: of what general clients do, an engine needs little, and they keep a request's body until its answer
 * has come to its end, which for a stream may take an hour.
 */
export class EngineConnection {
  /** `performance.now()` since when it has nothing to do. */
  idleSince = 0
  /** Milliseconds for which the other end keeps it idle, as it says; null where it does not. */
  keeps: number | null = null
  readonly #target: ConnectionTarget
  readonly #socket: Socket
  #connected = false
  #exchange: Exchange | null
  #reader: ResponseReader | null
  #askedAt = 0
  /** Whether an answer came on it before. */
  #kept = false
  /** Whether anything of this answer has come. */
  #heard = false

  /** Opens a connection for a request. */
  constructor(target: ConnectionTarget, exchange: Exchange) {
    this.#target = target
    this.#exchange = exchange
    this.#reader = new ResponseReader(exchange)
    const { connectTimeout, host, port } = target
    const callback = (length: number) => {
      this.#read(length)
      return true
    }
    const socket = connect({ host, port, noDelay: true, onread: { buffer: received, callback } })
    this.#socket = socket
    const late = setTimeout(() => socket.destroy(), connectTimeout)
    socket.once("connect", () => {
      clearTimeout(late)
      this.#connected = true
      this.#send()
    })
    socket.on("error", () => socket.destroy())
    socket.once("end", () => {
      if (this.#reader?.close() === true) this.#finish(this.#reader)
      socket.destroy()
    })
    socket.once("close", () => {
      clearTimeout(late)
      this.#fail()
      target.onClose(this)
    })
  }

  /** Whether it can take a request. */
  get open(): boolean {
    return this.#exchange === null && !this.#socket.destroyed
  }

  /** Sends another request on a connection that is idle. */
  ask(exchange: Exchange) {
    this.#exchange = exchange
    this.#reader = new ResponseReader(exchange)
    this.#heard = false
    this.#kept = true
    this.#send()
  }

  #send() {
    if (this.#exchange === null) return
    this.#askedAt = performance.now()
    const request = this.#exchange.request()
    // Text that long would be given three times its room on its way.
    this.#socket.write(request.length > inOnePiece ? Buffer.from(request) : request)
  }

  #read(length: number) {
    this.#heard = true
    const reader = this.#reader
    if (reader?.push(length === received.length ? received : received.subarray(0, length)) !== true) this.#socket.destroy()
    if (reader?.done === true) this.#finish(reader)
  }

  /** Nothing of the exchange is kept beyond it. */
  #taken(): Exchange | null {
    const exchange = this.#exchange
    this.#exchange = null
    this.#reader = null
    return exchange
  }

  /** The answer has come: the connection is there for the next one. */
  #finish({ keeps }: ResponseReader) {
    const exchange = this.#taken()
    this.keeps = keeps
    if (!this.#socket.destroyed && keeps !== 0 && this.#socket.writableLength === 0) {
      this.idleSince = performance.now()
      if (this.#socket.isPaused()) this.#socket.resume()
      this.#target.onIdle(this)
    } else this.#socket.destroy()
    exchange?.end()
  }

  #fail() {
    const exchange = this.#taken()
    if (!this.#connected) exchange?.failed("refused")
    else exchange?.failed(this.#kept && !this.#heard && performance.now() - this.#askedAt < staleWithin ? "stale" : "broken")
  }

  pause() {
    this.#socket.pause()
  }

  resume() {
    this.#socket.resume()
  }

  /** Closes it; whose request it has is told that it broke off. */
  destroy() {
    this.#socket.destroy()
  }
}
