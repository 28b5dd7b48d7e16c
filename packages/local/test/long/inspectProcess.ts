import { Hub } from "@seatrial/hub"
import { Effect, Option } from "effect"

// Reads the repository `odd/model` once as a preview does, or as a run does (`DEPTH=all`). Prints the result, the
// duration, and the memory compared with a small repository.

const inspect = (repo: string) =>
  Effect.gen(function* () {
    const hub = yield* Hub
    return yield* hub.inspect({ repo }, Option.none(), process.env.DEPTH === "all" ? "all" : "few")
  }).pipe(
    Effect.map(() => "served"),
    Effect.catchTags({
      HubRefusal: ({ code, message }) => Effect.succeed(`${code}: ${message}`),
      HubUnavailable: ({ message }) => Effect.succeed(`unavailable: ${message}`)
    })
  )

const program = Effect.gen(function* () {
  // Warms up what every preview needs: code, connections and the initial heap.
  for (let time = 0; time < 5; time++) yield* inspect("odd/small")
  globalThis.gc?.()
  const before = process.memoryUsage.rss()
  let most = before
  const sampling = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 1)
  const cpu = process.cpuUsage()
  const outcome = yield* inspect("odd/model")
  const { system, user } = process.cpuUsage(cpu)
  clearInterval(sampling)
  return { outcome, memory: Math.max(most, process.memoryUsage.rss()) - before, cpuSeconds: (user + system) / 1e6 }
})

process.stdout.write(JSON.stringify(await Effect.runPromise(Effect.provide(program, Hub.layer))))
