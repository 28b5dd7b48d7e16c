import { Effect, type Exit } from "effect"

/** The insert of a request's row, which commits while the engine is already working. */
export class PendingInsert {
  /** Null until the insert has ended. */
  exit: Exit.Exit<void> | null = null
  #waiter: ((exit: Effect.Effect<Exit.Exit<void>>) => void) | null = null

  settle(exit: Exit.Exit<void>) {
    this.exit = exit
    this.#waiter?.(Effect.succeed(exit))
  }

  /** The result of the insert. Supports one waiter at a time. */
  get ended(): Effect.Effect<Exit.Exit<void>> {
    return Effect.callback((resume) => {
      if (this.exit !== null) resume(Effect.succeed(this.exit))
      else this.#waiter = resume
    })
  }
}
