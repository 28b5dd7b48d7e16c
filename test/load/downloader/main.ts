import { Commit } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { Clock, Console, Effect, Option } from "effect"

const [directory = "", size = "0", sha256 = ""] = process.argv.slice(2)

/** Downloads one file like `seatrial fetch`, and prints the duration in milliseconds and the maximum memory of the process in bytes. */
Effect.gen(function* () {
  const hub = yield* Hub
  const before = yield* Clock.currentTimeMillis
  yield* hub.fetch({
    repo: "bench/model",
    commit: Commit.make("0".repeat(40)),
    files: [{ path: "model.safetensors", size: Number(size), blob_id: "0".repeat(40), sha256 }],
    directory,
    token: Option.none(),
    onProgress: () => Effect.void
  })
  const millis = (yield* Clock.currentTimeMillis) - before
  yield* Console.log(JSON.stringify({ millis, bytes: process.resourceUsage().maxRSS * 1024 }))
}).pipe(Effect.provide(Hub.layer), Effect.runPromise)
