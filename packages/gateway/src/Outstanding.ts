import type { Endpoint } from "@seatrial/store"
import { Effect, type Scope } from "effect"

/** Counts requests under way at each endpoint. */
export class Outstanding {
  readonly #counts = new Map<string, number>()

  /** The endpoint with the fewest requests under way, apart from those in `tried`. */
  pick(endpoints: ReadonlyArray<Endpoint>, tried: ReadonlySet<string>): Endpoint | undefined {
    let best: Endpoint | undefined
    for (const endpoint of endpoints) {
      if (tried.has(endpoint.url)) continue
      if (best === undefined || (this.#counts.get(endpoint.url) ?? 0) < (this.#counts.get(best.url) ?? 0)) best = endpoint
    }
    return best
  }

  /** Counts one request at the endpoint until the scope closes. */
  hold(url: string): Effect.Effect<void, never, Scope.Scope> {
    const add = (change: 1 | -1) =>
      Effect.sync(() => {
        const count = (this.#counts.get(url) ?? 0) + change
        if (count === 0) this.#counts.delete(url)
        else this.#counts.set(url, count)
      })
    return Effect.acquireRelease(add(1), () => add(-1))
  }
}
