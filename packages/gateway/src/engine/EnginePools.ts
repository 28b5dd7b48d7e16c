import { EngineConnection, type Exchange } from "./EngineConnection.ts"

/** Engines close idle connections after 5 s: ours go before, or a reused one races with its end. Milliseconds. */
const keptFor = 4_000

/** Where the engine says itself how long it keeps them: so much before, milliseconds. */
const margin = 1_000

/** Milliseconds between two looks for connections that nobody has needed for so long. */
const pause = 500

const isOld = ({ idleSince, keeps }: EngineConnection, now: number) => now - idleSince >= Math.min(keptFor, (keeps ?? Number.POSITIVE_INFINITY) - margin)

/** Connections to one engine: as many as requests were sent to it at once, which routing bounds. */
class EnginePool {
  readonly all = new Set<EngineConnection>()
  /** The latest last. */
  readonly #idle: Array<EngineConnection> = []
  readonly #host: string
  readonly #port: number
  readonly #connectTimeout: number

  constructor(url: string, connectTimeout: number) {
    const { hostname, port } = new URL(url)
    this.#host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
    this.#port = port === "" ? 80 : Number(port)
    this.#connectTimeout = connectTimeout
  }

  ask(exchange: Exchange): EngineConnection {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (!kept.open) continue
      if (!isOld(kept, performance.now())) {
        kept.ask(exchange)
        return kept
      }
      kept.destroy()
    }
    const opened = new EngineConnection(
      {
        host: this.#host,
        port: this.#port,
        connectTimeout: this.#connectTimeout,
        onIdle: (connection) => this.#idle.push(connection),
        onClose: (connection) => this.#forget(connection)
      },
      exchange
    )
    this.all.add(opened)
    return opened
  }

  #forget(connection: EngineConnection) {
    this.all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  /** Closes what has been idle too long. */
  prune(now: number) {
    for (const connection of this.#idle) if (isOld(connection, now)) connection.destroy()
  }
}

/** The kept connections to engines, by their address. */
export class EnginePools {
  readonly #pools = new Map<string, EnginePool>()
  readonly #connectTimeout: number
  readonly #timer = setInterval(() => this.#prune(), pause)

  /** `connectTimeout`: milliseconds until a connection must be open. */
  constructor(connectTimeout: number) {
    this.#connectTimeout = connectTimeout
    this.#timer.unref()
  }

  /** Sends a request to `url`, `http://address:port`. What it gives is the request's until the answer has come. */
  ask(url: string, exchange: Exchange): EngineConnection {
    let pool = this.#pools.get(url)
    if (pool === undefined) {
      pool = new EnginePool(url, this.#connectTimeout)
      this.#pools.set(url, pool)
    }
    return pool.ask(exchange)
  }

  #prune() {
    const now = performance.now()
    for (const [url, pool] of this.#pools) {
      pool.prune(now)
      if (pool.all.size === 0) this.#pools.delete(url)
    }
  }

  close() {
    clearInterval(this.#timer)
    for (const pool of this.#pools.values()) for (const connection of pool.all) connection.destroy()
  }
}
