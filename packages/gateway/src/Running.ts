import type { OrgId, RequestId } from "@seatrial/domain"
import { Metering, makeOutageLog } from "@seatrial/store"
import { Effect, type Scope } from "effect"
import type { Progress } from "./Progress.ts"

interface Identity {
  readonly id: RequestId
  readonly orgId: OrgId
}

/**
 * The requests under way whose row is committed. Every 5 seconds their current usage is stored and their lease renewed,
 * in shared commits. After a failure the next attempt follows in one second, because leases expire.
 */
export class Running {
  readonly #requests = new Map<RequestId, { readonly identity: Identity; readonly progress: Progress }>()

  static readonly make: Effect.Effect<Running, never, Metering | Scope.Scope> = Effect.gen(function* () {
    const metering = yield* Metering
    const running = new Running()
    const checkpoint = Effect.suspend(() =>
      Effect.forEach(running.#requests.values(), ({ identity, progress }) => metering.checkpoint(identity, progress.usage), {
        concurrency: "unbounded",
        discard: true
      })
    )
    const log = makeOutageLog("checkpoints could not be written")
    const untilWritten: Effect.Effect<void> = Effect.catchCause(checkpoint, (cause) => log(cause).pipe(Effect.delay("1 second"), Effect.andThen(untilWritten)))
    yield* untilWritten.pipe(Effect.delay("5 seconds"), Effect.forever, Effect.forkScoped)
    return running
  })

  add(identity: Identity, progress: Progress) {
    this.#requests.set(identity.id, { identity, progress })
  }

  remove(id: RequestId) {
    this.#requests.delete(id)
  }
}
