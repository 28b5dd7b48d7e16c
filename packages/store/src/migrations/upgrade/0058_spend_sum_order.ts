import { replaceCountSpend } from "./0056_quiet_spend_sums.ts"

/**
 * One statement that records ends and whole answers runs the trigger twice: first for the rows that it updated, then for
 * those that it inserted. Each run locks its sums in order, but two statements could lock the same sums in opposite orders
 * and deadlock. Updates and inserts now have separate shards, so each statement locks all sums in one order. Shard 16
 * stays that of `completeSums`.
 */
export const spendSumOrder = replaceCountSpend({ update: "pg_backend_pid() % 8", insert: "8 + pg_backend_pid() % 8" })
