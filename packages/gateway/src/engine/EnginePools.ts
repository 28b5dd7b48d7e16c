import { Pool } from "undici"

/** Most connections to one engine. */
const connections = 4_096

/**
 * Milliseconds. Engines close idle connections after 5 seconds. The gateway closes them earlier, because a request on a
 * connection that is just being closed fails.
 */
const keptFor = 4_000

/**
 * Milliseconds without a packet until the kernel asks whether the engine's node still exists. It asks ten times, once a
 * second, so that requests do not wait for an answer of a lost node.
 */
const probedAfter = 5_000

/** Milliseconds between two searches for unused pools. */
const pause = 10_000

/** Connection pools by engine address. */
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
      connect: { timeout: this.#connectTimeout, keepAliveInitialDelay: probedAfter },
      keepAliveTimeout: keptFor,
      // Also if an engine announces a longer time.
      keepAliveMaxTimeout: keptFor,
      // The gateway enforces these timeouts itself.
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
