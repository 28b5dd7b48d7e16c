import { Effect, type Exit } from "effect"

/** The commit of a request's row, beside which the engine is asked already. */
export class PendingInsert {
  /** Null while it is under way. */
  exit: Exit.Exit<void> | null = null
  #waiter: ((exit: Effect.Effect<Exit.Exit<void>>) => void) | null = null

  settle(exit: Exit.Exit<void>) {
    this.exit = exit
    this.#waiter?.(Effect.succeed(exit))
  }

  /** Its end; one may wait at a time. */
  get ended(): Effect.Effect<Exit.Exit<void>> {
    return Effect.callback((resume) => {
      if (this.exit !== null) resume(Effect.succeed(this.exit))
      else this.#waiter = resume
    })
  }
}
