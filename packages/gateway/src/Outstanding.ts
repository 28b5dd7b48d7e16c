import type { Endpoint } from "@seatrial/store"

/** Counts requests under way at each endpoint. */
export class Outstanding {
  readonly #counts = new Map<string, number>()

  /** The endpoint with the fewest requests under way, apart from those in `tried`. */
  pick(endpoints: ReadonlyArray<Endpoint>, tried: ReadonlyArray<string>): Endpoint | undefined {
    let best: Endpoint | undefined
    for (const endpoint of endpoints) {
      if (tried.includes(endpoint.url)) continue
      if (best === undefined || (this.#counts.get(endpoint.url) ?? 0) < (this.#counts.get(best.url) ?? 0)) best = endpoint
    }
    return best
  }

  add(url: string) {
    this.#counts.set(url, (this.#counts.get(url) ?? 0) + 1)
  }

  remove(url: string) {
    const count = (this.#counts.get(url) ?? 0) - 1
    if (count > 0) this.#counts.set(url, count)
    else this.#counts.delete(url)
  }
}
