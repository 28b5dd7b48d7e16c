import type { RequestId } from "@seatrial/domain"
import { Metering } from "@seatrial/store"
import { Effect, Schedule, type Scope } from "effect"
import type { Progress } from "./Progress.ts"

/** The requests under way whose row is committed. Each 5 s their usage so far is written down and their lease renewed, all in the same commits. */
export class Running {
  readonly #requests = new Map<RequestId, Progress>()

  static readonly make: Effect.Effect<Running, never, Metering | Scope.Scope> = Effect.gen(function* () {
    const metering = yield* Metering
    const running = new Running()
    yield* Effect.suspend(() =>
      Effect.forEach([...running.#requests], ([id, progress]) => metering.checkpoint(id, progress.usage), { concurrency: "unbounded", discard: true })
    ).pipe(
      Effect.catchCause((cause) => Effect.logWarning("checkpoints could not be written", cause)),
      Effect.delay("5 seconds"),
      Effect.repeat(Schedule.forever),
      Effect.forkScoped
    )
    return running
  })

  add(id: RequestId, progress: Progress) {
    this.#requests.set(id, progress)
  }

  remove(id: RequestId) {
    this.#requests.delete(id)
  }
}
