import { Pool } from "undici"

/** Connections to one engine at most. */
const connections = 4_096

/** Engines close idle connections after 5 s: ours go before, or a reused one races with its end. Milliseconds. */
const keptFor = 4_000

/** Milliseconds between two looks for engines that nobody has asked for a while. */
const pause = 10_000

/** The kept connections to engines, by their address. */
export class EnginePools {
  readonly #pools = new Map<string, Pool>()
  readonly #connectTimeout: number
  readonly #timer = setInterval(() => this.#prune(), pause)

  /** `connectTimeout`: milliseconds until a connection must be open. */
  constructor(connectTimeout: number) {
    this.#connectTimeout = connectTimeout
    this.#timer.unref()
  }

  /** `url`: `http://address:port`. */
  of(url: string): Pool {
    const known = this.#pools.get(url)
    if (known !== undefined) return known
    const pool = new Pool(url, {
      connections,
      pipelining: 1,
      connect: { timeout: this.#connectTimeout },
      keepAliveTimeout: keptFor,
      // Also where an engine says that it keeps them longer.
      keepAliveMaxTimeout: keptFor,
      // These times are ours to keep.
      headersTimeout: 0,
      bodyTimeout: 0
    })
    this.#pools.set(url, pool)
    return pool
  }

  #prune() {
    for (const [url, pool] of this.#pools) {
      const { connected, pending, queued, running } = pool.stats
      if (connected + pending + queued + running > 0) continue
      this.#pools.delete(url)
      void pool.destroy()
    }
  }

  async close() {
    clearInterval(this.#timer)
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }
}
