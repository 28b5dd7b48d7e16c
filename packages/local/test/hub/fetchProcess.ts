import { Commit, RepositoryFile } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { Effect, Option, Redacted, Schema } from "effect"

const Order = Schema.fromJsonString(
  Schema.Struct({ repo: Schema.String, commit: Commit, files: Schema.Array(RepositoryFile), directory: Schema.String, token: Schema.String })
)

/** Downloads files from the hub at `HF_ENDPOINT` in a separate process. */
Effect.gen(function* () {
  const hub = yield* Hub
  const { token, ...order } = yield* Schema.decodeUnknownEffect(Order)(process.argv[2])
  yield* hub.fetch({ ...order, token: Option.some(Redacted.make(token)) })
}).pipe(Effect.provide(Hub.layer), Effect.runPromise)
