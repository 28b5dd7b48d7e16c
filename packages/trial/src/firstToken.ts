import { Effect } from "effect"
import { greedy, type Subject, textPath } from "./Subject.ts"

/** Seconds until the first token of a short answer; null if none came. The checks find the reason. */
export const firstToken = ({ client, servedName }: Subject): Effect.Effect<number | null> =>
  client.stream(textPath, { model: servedName, prompt: "Hello.", ...greedy, max_tokens: 1, ignore_eos: true }).pipe(
    Effect.map(({ arrivals: [first], sentAt }) => (first === undefined ? null : Math.max(0, first - sentAt) / 1_000)),
    Effect.catch(() => Effect.succeed(null))
  )
