import { passesOf, type RecordedPass, replay } from "@seatrial/operator/record"
import { Decisions } from "@seatrial/store"
import { Console, Effect, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { printRows } from "./print.ts"

const limit = Flag.Int("limit").pipe(
  Flag.withDescription("Maximum number of listed decisions (default 200); all are counted"),
  Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))),
  Flag.withDefault(200)
)
const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))

const tags = (actions: ReadonlyArray<{ readonly _tag: string }>) => actions.map(({ _tag }) => _tag)

interface Counts {
  readonly decided: number
  readonly unreadable: number
  readonly differing: number
}

/** What this version decides differently. A rule that only has another name is no difference. */
const compare = (pass: RecordedPass) => {
  const result = replay(pass)
  if (result._tag !== "Differs" || result.parts.every((part) => part === "rule")) return { isUnreadable: result._tag === "Unreadable", difference: null }
  const { decision, parts, recorded } = result
  return {
    isUnreadable: false,
    difference: {
      deployment: pass.deploymentId,
      at: new Date(pass.decidedAt).toISOString(),
      build: pass.build,
      differs: parts,
      rule: recorded.rule,
      actions: tags(recorded.actions),
      new_rule: decision.rule,
      new_actions: tags(decision.actions),
      new_message: decision.message
    }
  }
}

const preview = Effect.fnUntraced(function* (options: { readonly json: boolean; readonly limit: number }) {
  const { read } = yield* Decisions
  const differences: Array<NonNullable<ReturnType<typeof compare>["difference"]>> = []
  const counts = yield* Stream.runFold(
    passesOf(read(null)),
    (): Counts => ({ decided: 0, unreadable: 0, differing: 0 }),
    ({ decided, differing, unreadable }, pass) => {
      const { difference, isUnreadable } = compare(pass)
      if (difference !== null && differences.length < options.limit) differences.push(difference)
      return { decided: decided + 1, unreadable: unreadable + (isUnreadable ? 1 : 0), differing: differing + (difference === null ? 0 : 1) }
    }
  )
  yield* printRows(options.json, differences)
  const { decided, differing, unreadable } = counts
  const summary = `Replayed ${decided} recorded decisions: ${differing} differ, and ${unreadable} cannot be read by this version or are not complete.`
  if (differing > 0) return yield* new CommandError({ message: summary })
  yield* Console.error(summary)
})

/**
 * Applies the rules of this version to the recorded history of a database. The database and the cluster stay as they
 * are.
 */
export const upgradePreviewCommand = Command.make("upgrade-preview", { limit, json }, preview).pipe(
  Command.withShortDescription("Lists recorded decisions that this version would make differently. Reads the database."),
  Command.withDescription(
    "Replays every recorded decision of the operator with the rules of this version, and lists the decisions that would differ. Run the new version's command before an upgrade. For administrators: reads the database, and changes nothing. Exit code 1 if a decision differs."
  )
)
