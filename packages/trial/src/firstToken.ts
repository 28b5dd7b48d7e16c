import { Effect } from "effect"
import { askStreamed, type Subject } from "./Subject.ts"

/** Seconds until the engine's answer to a short question begins; null where it does not: the checks find out why. */
export const firstToken = (subject: Subject): Effect.Effect<number | null> =>
  askStreamed(subject, "Hello.", { max_tokens: 1, ignore_eos: true }).pipe(
    Effect.map(({ arrivals: [first], sentAt }) => (first === undefined ? null : Math.max(0, first - sentAt) / 1_000)),
    Effect.catch(() => Effect.succeed(null))
  )
