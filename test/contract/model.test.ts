import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Random, Result } from "effect"
import { Stage } from "./Stage.ts"
import { type Command, commands } from "./sequence/Command.ts"
import type { Contradiction } from "./sequence/Play.ts"
import { playSequence } from "./sequence/playSequence.ts"

const sequences = Number(process.env.CONTRACT_SEQUENCES ?? 300)
const steps = Number(process.env.CONTRACT_STEPS ?? 30)
const fixedSeed = process.env.CONTRACT_SEED

/** Number of sequences that run concurrently. */
const concurrency = 4
/** Maximum number of attempts to shorten a failing sequence. */
const maxShrinks = 60

type Sequence = ReadonlyArray<Command>

/** Removes ever smaller blocks of steps while the remaining sequence still fails. */
const shrink = Effect.fnUntraced(function* <R>(failing: Sequence, first: Contradiction, play: (sequence: Sequence) => Effect.Effect<void, Contradiction, R>) {
  let shortest = failing
  let failure = first
  let tries = 0
  for (let block = Math.ceil(failing.length / 2); block >= 1; block = Math.floor(block / 2)) {
    for (let start = 0; start < shortest.length && tries < maxShrinks; tries++) {
      const shorter = shortest.toSpliced(start, block)
      const played = yield* Effect.result(play(shorter))
      if (Result.isFailure(played)) {
        shortest = shorter
        failure = played.failure
      } else start += block
    }
  }
  return { shortest, failure }
})

/** Outcomes that must occur often, because otherwise the test would prove little. */
const kinds = [
  "201",
  "200",
  "401 invalid_api_key",
  "402 first_purchase_required",
  "403 missing_scope",
  "404 model_deleted",
  "404 not_found",
  "409 deployment_finished",
  "409 idempotency_key_reused",
  "409 model_name_taken",
  "changed",
  "unchanged"
]

layer(Stage.layer(), { excludeTestServices: true, timeout: 300_000 })("two servers on one database", (it) => {
  it.effect(`${sequences} random sequences of ${steps} steps get the responses of the contract`, () =>
    Effect.gen(function* () {
      const seed = fixedSeed ?? String(yield* Random.nextIntBetween(0, 2 ** 31))
      process.stdout.write(`CONTRACT_SEED=${seed} CONTRACT_SEQUENCES=${sequences} CONTRACT_STEPS=${steps}\n`)
      const met = new Map<string, number>()
      const play = (index: number) => (sequence: Sequence) => playSequence(sequence, index % 8 !== 0, met)
      const all = yield* Arbitrary.sampleEffect(commands(steps), { count: sequences, seed })
      yield* Effect.forEach(
        all,
        (sequence, index) =>
          Effect.catchTag(
            play(index)(sequence),
            "Contradiction",
            Effect.fnUntraced(function* (first) {
              const { failure, shortest } = yield* shrink(sequence, first, play(index))
              return yield* Effect.die(
                new Error(`Sequence ${index} of seed ${seed}, ${shortest.length} steps left: ${JSON.stringify(shortest)}\n${failure.message}`)
              )
            })
          ),
        { concurrency, discard: true }
      )
      process.stdout.write(
        `${[...met]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([kind, times]) => `${kind}: ${times}`)
          .join(", ")}\n`
      )
      if (fixedSeed === undefined && sequences * steps >= 9_000) for (const kind of kinds) assert.isAbove(met.get(kind) ?? 0, 20, kind)
    })
  )
})
