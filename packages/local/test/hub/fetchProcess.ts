import { stdout } from "node:process"
import { Hub } from "@seatrial/hub"
import { Effect, Option } from "effect"

const [repo = "", directory = ""] = process.argv.slice(2)

/** Downloads a repository from the hub at `HF_ENDPOINT` in a process of its own, and tells how many bytes it has. */
Effect.gen(function* () {
  const hub = yield* Hub
  const { commit, files } = yield* hub.inspect({ repo }, Option.none())
  yield* hub.fetch({ repo, commit, files, directory, token: Option.none(), onProgress: ({ bytes }) => Effect.sync(() => stdout.write(`${bytes}\n`)) })
}).pipe(Effect.provide(Hub.layer), Effect.runPromise)
