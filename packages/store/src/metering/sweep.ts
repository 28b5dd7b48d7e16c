import type { PgClient } from "@effect/sql-pg"
import { OrgId, Prices, RequestId } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { MillisFromDate } from "../columns.ts"
import { endRow } from "./endRow.ts"
import type { EndRow } from "./rows.ts"
import { endStatement, gatewayLost, leaseMillis, lostStatement } from "./statements.ts"

/** Maximum number of requests that one round of the sweep ends. */
const maxRequestsPerRound = 500

const LostRow = Schema.Struct({
  id: RequestId,
  orgId: OrgId,
  inputTokens: Schema.NullOr(Schema.Int),
  outputTokens: Schema.NullOr(Schema.Int),
  cacheReadTokens: Schema.NullOr(Schema.Int),
  cacheWriteTokens: Schema.NullOr(Schema.Int),
  createdAt: MillisFromDate,
  leaseUntil: MillisFromDate,
  prices: Prices,
  hfRevision: Schema.String,
  engineVersion: Schema.String
})

const lostEnd = (row: typeof LostRow.Type): EndRow =>
  endRow({
    id: row.id,
    orgId: row.orgId,
    statusCode: 500,
    usage: {
      input_tokens: row.inputTokens ?? 0,
      output_tokens: row.outputTokens ?? 0,
      cache_read_tokens: row.cacheReadTokens,
      cache_write_tokens: row.cacheWriteTokens
    },
    ttftMs: null,
    // Until the last renewal by its gateway.
    latencyMs: Math.max(0, row.leaseUntil - leaseMillis - row.createdAt),
    finishReason: null,
    error: { code: gatewayLost, message: "The gateway that served the request was lost.", param: null },
    note: row.inputTokens === null ? "The gateway was lost before it counted any usage." : "The gateway was lost; the usage is its last count, a lower bound.",
    receipt: { prices: row.prices, hfRevision: row.hfRevision, engineVersion: row.engineVersion }
  })

/** Ends the requests of lost gateways and returns their number. `onEnded` gets the rows that were written. */
export const sweepLost = (sql: PgClient.PgClient, onEnded: (rows: ReadonlyArray<EndRow>) => void) => {
  const findLost = SqlSchema.findAll({ Request: Schema.Void, Result: LostRow, execute: () => lostStatement(sql, maxRequestsPerRound) })
  return Effect.gen(function* () {
    let ended = 0
    while (true) {
      const lost = yield* findLost()
      // A request whose lease was renewed since then does not end.
      if (lost.length > 0) {
        const rows = lost.map(lostEnd)
        ended += (yield* endStatement(sql, rows, "lost")).length
        onEnded(rows)
      }
      if (lost.length < maxRequestsPerRound) return ended
    }
  })
}
