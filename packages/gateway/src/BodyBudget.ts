/** What one request keeps of the budget. */
export interface BodyShare {
  /** Whether so many more bytes may be kept. */
  readonly take: (bytes: number) => boolean
  /** Nothing is kept any more. */
  readonly release: () => void
}

/** Bytes of request bodies that are kept at once, of all callers together: each may be large, a stream is long, and the memory is everybody's. */
export class BodyBudget {
  #kept = 0
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  open(): BodyShare {
    let own = 0
    return {
      take: (bytes) => {
        if (this.#kept + bytes > this.#most) return false
        this.#kept += bytes
        own += bytes
        return true
      },
      release: () => {
        this.#kept -= own
        own = 0
      }
    }
  }
}
