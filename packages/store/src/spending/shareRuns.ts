import { Deferred, Effect, Exit } from "effect"

/**
 * Shares runs of an effect among concurrent callers: each caller gets the result of a run that began after its call, at
 * most one run is in progress, and an interrupted caller does not end the run. `fork` starts a run.
 */
export const shareRuns = <A, E>(effect: Effect.Effect<A, E>, fork: (run: Effect.Effect<void>) => void): Effect.Effect<A, E> => {
  let isRunning = false
  let next: Deferred.Deferred<A, E> | null = null
  const start = () => {
    const current = next
    if (current === null) return
    next = null
    isRunning = true
    fork(
      Effect.flatMap(Effect.exit(effect), (exit) =>
        Effect.sync(() => {
          isRunning = false
          start()
          Deferred.doneUnsafe(current, Exit.isSuccess(exit) ? Effect.succeed(exit.value) : Effect.failCause(exit.cause))
        })
      )
    )
  }
  return Effect.suspend(() => {
    next ??= Deferred.makeUnsafe<A, E>()
    const own = next
    if (!isRunning) start()
    return Deferred.await(own)
  })
}
