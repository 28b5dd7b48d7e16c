import { Effect, Stream } from "effect"
import { KubeClient, Pod, type WatchEvent } from "../src/index.ts"

/** An event of a watch as a short line. */
export const formatEvent = (event: WatchEvent<Pod>) =>
  event._tag === "Synced"
    ? `Synced ${event.items.map((item) => item.metadata.name).join()}`
    : `${event._tag} ${event._tag === "RemovedUnreadable" ? event.key : event.object.metadata.name}`

/** Watches until this number of events has arrived, and returns them as short lines. */
export const watchFor = (count: number) =>
  Effect.gen(function* () {
    const client = yield* KubeClient
    const events = yield* client.watch(Pod, { namespace: "default" }).pipe(Stream.take(count), Stream.runCollect)
    return events.map(formatEvent)
  })
