import { Effect, Semaphore } from "effect"

/** Limits concurrency by key: further effects wait. Idle keys take no memory. */
export class Turns {
  readonly #maxConcurrent: number
  readonly #queues = new Map<string, { readonly turns: Semaphore.Semaphore; users: number }>()

  constructor(maxConcurrent: number) {
    this.#maxConcurrent = maxConcurrent
  }

  /** Runs the effect as soon as the key has a free permit. */
  take<A, E, R>(key: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const queue = this.#queues.get(key) ?? { turns: Semaphore.makeUnsafe(this.#maxConcurrent), users: 0 }
      this.#queues.set(key, queue)
      queue.users++
      const left = Effect.sync(() => {
        if (--queue.users === 0) this.#queues.delete(key)
      })
      return Effect.ensuring(queue.turns.withPermit(effect), left)
    })
  }
}
