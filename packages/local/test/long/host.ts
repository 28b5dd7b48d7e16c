import { Effect, Redacted } from "effect"
import { EmbeddedPostgres } from "../../src/postgres/EmbeddedPostgres.ts"

// A program that holds an embedded Postgres until it is killed, and reports its address to its parent.
const [directory = "", kept = "durable"] = process.argv.slice(2)

Effect.gen(function* () {
  const postgres = yield* EmbeddedPostgres
  yield* postgres.createDatabase("kept")
  process.send?.({ url: Redacted.value(postgres.url("kept")) })
  return yield* Effect.never
}).pipe(Effect.provide(EmbeddedPostgres.layer({ directory, durable: kept === "durable" })), Effect.runPromise)
