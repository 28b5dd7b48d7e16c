import { connect, type Socket } from "node:net"
import { StreamReader } from "./StreamReader.ts"

/** How an exchange ended and when its chunks arrived, in milliseconds of `now`. */
export interface Exchange {
  readonly sentAt: number
  readonly arrivals: ReadonlyArray<number>
  /** `ended`, or the kind of error. */
  readonly outcome: string
  readonly usage: { readonly prompt: number; readonly completion: number } | null
}

/** A clock of the process, the same in all its threads. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** Milliseconds without a byte after which the engine counts as hung. */
const stallMillis = 60_000

/**
 * When the engine last sent something to any of the streams. A stream that waits for its first token while others
 * receive theirs is queued.
 */
export interface Pulse {
  readonly beat: (at: number) => void
  readonly last: () => number
}

/** For a single connection. */
const noPulse: Pulse = { beat: () => {}, last: () => Number.NEGATIVE_INFINITY }

interface Pending {
  readonly reader: StreamReader
  readonly sentAt: number
  readonly resolve: (exchange: Exchange) => void
}

/**
 * A persistent connection to an engine with one streamed request at a time. It reads only what a benchmark needs: CPU
 * time of the client distorts the measurement, and `node:http` takes several times as much.
 */
export class EngineConnection {
  readonly #host: string
  readonly #port: number
  readonly #stall: number
  readonly #pulse: Pulse
  #socket: Socket | undefined
  #opening: Socket | undefined
  #pending: Pending | undefined

  /** `stall`: milliseconds without a byte after which the engine counts as hung. */
  constructor(host: string, port: number, { pulse = noPulse, stall = stallMillis }: { readonly pulse?: Pulse; readonly stall?: number } = {}) {
    this.#host = host
    this.#port = port
    this.#stall = stall
    this.#pulse = pulse
  }

  /** Sends a POST with this body once the connection is open. The time to open it does not count. */
  async exchange(path: string, body: string): Promise<Exchange> {
    const socket = this.#socket ?? (await this.#open())
    if (socket === null) return { sentAt: now(), arrivals: [], outcome: "unreachable", usage: null }
    const head = `POST ${path} HTTP/1.1\r\nhost: ${this.#host}:${this.#port}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`
    return new Promise((resolve) => {
      const reader = new StreamReader()
      this.#pending = { reader, sentAt: now(), resolve }
      socket.write(head + body)
    })
  }

  /** The partial exchange of the current request; null if there is none. */
  get underWay(): Exchange | null {
    return this.#pending === undefined ? null : exchangeOf(this.#pending, "unfinished")
  }

  /** Closes the connection. A current request ends as `unfinished`, and the engine is notified. */
  close(): void {
    this.#settle("unfinished")
    this.#opening?.destroy()
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #open(): Promise<Socket | null> {
    return new Promise((resolve) => {
      const socket = connect({ host: this.#host, port: this.#port, noDelay: true })
      this.#opening = socket
      socket.setTimeout(this.#stall)
      const failed = () => resolve(null)
      socket.once("error", failed)
      socket.once("connect", () => {
        this.#socket = socket
        resolve(socket)
      })
      socket.on("data", (bytes: Buffer) => this.#read(bytes))
      socket.on("error", () => {})
      socket.on("timeout", () => {
        const pending = this.#pending
        const quiet = now() - Math.max(this.#pulse.last(), pending?.sentAt ?? 0)
        if (pending?.reader.arrivals.length === 0 && quiet < this.#stall) {
          socket.setTimeout(Math.ceil(this.#stall - quiet))
          return
        }
        this.#settle("stalled")
        socket.destroy()
      })
      socket.on("close", () => {
        failed()
        if (this.#socket !== socket) return
        this.#socket = undefined
        // Without a length, an answer may end with its connection.
        const complete = this.#pending?.reader.endsWithConnection === true
        this.#settle(complete ? "ended" : "disconnected")
      })
    })
  }

  #read(bytes: Buffer): void {
    const reader = this.#pending?.reader
    if (reader === undefined) return
    const at = now()
    const before = reader.arrivals.length
    reader.take(bytes, at)
    if (reader.arrivals.length > before) {
      // A request that waited longer for its first token must keep the usual time between tokens.
      if (before === 0) this.#socket?.setTimeout(this.#stall)
      this.#pulse.beat(at)
    }
    if (!reader.over) return
    const keep = reader.keepsConnection
    this.#settle("ended")
    if (keep) return
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #settle(how: string): void {
    const pending = this.#pending
    this.#pending = undefined
    pending?.resolve(exchangeOf(pending, how))
  }
}

const exchangeOf = ({ reader, sentAt }: Pending, how: string): Exchange => ({
  sentAt,
  arrivals: reader.arrivals,
  outcome: how === "ended" ? (reader.problem ?? "ended") : how,
  usage: reader.usage
})
