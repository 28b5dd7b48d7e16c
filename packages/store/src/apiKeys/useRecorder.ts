import { type PgClient, PgTypes } from "@effect/sql-pg"
import type { KeyId, OrgId } from "@seatrial/domain"
import { Effect, Queue, Result } from "effect"
import { makeOutageLog } from "../outageLog.ts"

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
  const text = (values: ReadonlyArray<string>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))
  yield* Effect.gen(function* () {
    const uses = yield* Queue.takeAll(used)
    const times = uses.map(({ at }) => new Date(at))
    yield* sql`
      UPDATE api_keys k SET last_used_at = u.at
      FROM unnest(${text(uses.map(({ orgId }) => orgId))}::text[], ${text(uses.map(({ id }) => id))}::text[], ${times}::timestamptz[]) AS u (org_id, id, at)
      WHERE k.org_id = u.org_id AND k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at <= u.at - make_interval(secs => ${intervalMillis / 1_000}))`
  }).pipe(Effect.catchCause(makeOutageLog("Could not record the use of API keys")), Effect.forever, Effect.forkScoped)
  return (use: KeyUse): void => {
    Queue.offerUnsafe(used, use)
  }
})
