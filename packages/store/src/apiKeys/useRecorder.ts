import type { PgClient } from "@effect/sql-pg"
import type { KeyId, OrgId } from "@seatrial/domain"
import { Effect, Queue } from "effect"
import { makeOutageLog } from "../outageLog.ts"
import { textArray } from "../textArray.ts"

interface KeyUse {
  readonly id: KeyId
  readonly orgId: OrgId
  /** Unix milliseconds. */
  readonly at: number
}

/** Maximum number of uses that wait to be written. Further ones are dropped. */
const maxPendingUses = 1_024

/** Writes `last_used_at` of keys in the background, and returns the function that records a use. */
export const makeUseRecorder = Effect.fnUntraced(function* (sql: PgClient.PgClient, intervalMillis: number) {
  const used = yield* Queue.dropping<KeyUse>(maxPendingUses)
  yield* Effect.gen(function* () {
    const uses = yield* Queue.takeAll(used)
    const times = uses.map(({ at }) => new Date(at))
    yield* sql`
      UPDATE api_keys k SET last_used_at = u.at
      FROM unnest(${textArray(uses.map(({ orgId }) => orgId))}::text[], ${textArray(uses.map(({ id }) => id))}::text[], ${times}::timestamptz[]) AS u (org_id, id, at)
      WHERE k.org_id = u.org_id AND k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at <= u.at - make_interval(secs => ${intervalMillis / 1_000}))`
  }).pipe(Effect.catchCause(makeOutageLog("Could not record the use of API keys")), Effect.forever, Effect.forkScoped)
  return (use: KeyUse): void => {
    Queue.offerUnsafe(used, use)
  }
})
