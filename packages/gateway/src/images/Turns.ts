import { Effect, Semaphore } from "effect"

/** At most so many at once of each key; who comes later waits. What rests leaves nothing behind. */
export class Turns {
  readonly #atOnce: number
  readonly #queues = new Map<string, { readonly turns: Semaphore.Semaphore; users: number }>()

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Runs the effect when it is its turn. */
  take<A, E, R>(key: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      const queue = this.#queues.get(key) ?? { turns: Semaphore.makeUnsafe(this.#atOnce), users: 0 }
      this.#queues.set(key, queue)
      queue.users++
      const left = Effect.sync(() => {
        if (--queue.users === 0) this.#queues.delete(key)
      })
      return Effect.ensuring(queue.turns.withPermit(effect), left)
    })
  }
}
