import { EngineConnection } from "./EngineConnection.ts"

/** Connections to one engine at most, and those of them that are kept while nobody needs them. */
const most = 4_096
const mostKept = 256

/** Engines close idle connections after 5 s: ours go before, or a reused one races with its end. Milliseconds. */
const keptFor = 3_500

/** The kept connections to one engine. */
export class Origin {
  readonly host: string
  readonly port: number
  /** Value of the Host header. */
  readonly name: string
  readonly #free: Array<EngineConnection> = []
  readonly #all = new Set<EngineConnection>()

  constructor(url: string) {
    const { host, hostname, port } = new URL(url)
    this.host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
    this.port = port === "" ? 80 : Number(port)
    this.name = host
  }

  get size(): number {
    return this.#all.size
  }

  /** One that was kept, the latest first, or a new one; undefined where there are too many. */
  take(): EngineConnection | undefined {
    const kept = this.#free.pop()
    if (kept !== undefined || this.#all.size >= most) return kept
    const opened = new EngineConnection({
      host: this.host,
      port: this.port,
      onFree: (connection) => {
        if (this.#free.length >= mostKept) return connection.destroy()
        connection.freeSince = performance.now()
        this.#free.push(connection)
      },
      onClosed: (connection) => {
        this.#all.delete(connection)
        const at = this.#free.indexOf(connection)
        if (at !== -1) this.#free.splice(at, 1)
      }
    })
    this.#all.add(opened)
    return opened
  }

  /** Closes what nobody has needed for a while. */
  prune(now: number) {
    let old = 0
    for (const { freeSince } of this.#free) {
      if (now - freeSince < keptFor) break
      old++
    }
    for (const connection of this.#free.splice(0, old)) connection.destroy()
  }

  close() {
    for (const connection of this.#all) connection.destroy()
  }
}

/** The kept connections to all engines. */
export class ConnectionPool {
  readonly #origins = new Map<string, Origin>()
  readonly #timer = setInterval(() => this.#prune(), 250)

  constructor() {
    this.#timer.unref()
  }

  /** `url`: `http://address:port`. */
  of(url: string): Origin {
    const known = this.#origins.get(url)
    if (known !== undefined) return known
    const origin = new Origin(url)
    this.#origins.set(url, origin)
    return origin
  }

  #prune() {
    const now = performance.now()
    for (const [url, origin] of this.#origins) {
      if (origin.size === 0) this.#origins.delete(url)
      else origin.prune(now)
    }
  }

  close() {
    clearInterval(this.#timer)
    for (const origin of this.#origins.values()) origin.close()
  }
}
