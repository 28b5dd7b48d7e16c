import { Effect } from "effect"
import { greedy, type Subject, textPath } from "./Subject.ts"

/** Seconds until the engine's answer to a short text begins; null where it does not: the checks find out why. */
export const firstToken = ({ client, servedName }: Subject): Effect.Effect<number | null> =>
  client.stream(textPath, { model: servedName, prompt: "Hello.", ...greedy, max_tokens: 1, ignore_eos: true }).pipe(
    Effect.map(({ arrivals: [first], sentAt }) => (first === undefined ? null : Math.max(0, first - sentAt) / 1_000)),
    Effect.catch(() => Effect.succeed(null))
  )
