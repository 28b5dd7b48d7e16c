import { Commit } from "@seatrial/domain"
import { copyWeights } from "@seatrial/hub"
import { Effect, Schema } from "effect"

const Order = Schema.fromJsonString(
  Schema.Struct({ from: Schema.String, to: Schema.String, repo: Schema.String, commit: Commit, manifest: Schema.String, dieAt: Schema.Finite })
)

/** Copies a commit in a separate process, which dies when this many bytes are copied. */
Effect.gen(function* () {
  const { dieAt, ...order } = yield* Schema.decodeUnknownEffect(Order)(process.argv[2])
  yield* copyWeights({
    ...order,
    verify: "recorded",
    inUse: { at: 0, commits: [] },
    onProgress: ({ bytes }) => Effect.sync(() => bytes >= dieAt && process.kill(process.pid, "SIGKILL")),
    onRemoved: () => Effect.void
  })
}).pipe(Effect.scoped, Effect.runPromise)
