import { cleanStore } from "@seatrial/hub"
import { NeededWeights } from "@seatrial/store"
import { Console, Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"

/** What the clean-up of the weights store runs: removes the commits that no model has needed for some time. */
export const cleanWeightsCommand = Command.make(
  "clean-weights",
  {
    directory: Flag.String("directory").pipe(Flag.withDescription("Folder of the weights store")),
    ageDays: Flag.Int("age-days").pipe(
      Flag.withDescription("Days for which nobody needed what is removed"),
      Flag.filter(
        (days) => days >= 1,
        () => "a number of days, 1 or more"
      ),
      Flag.withDefault(30)
    ),
    verifyDays: Flag.Int("verify-days").pipe(
      Flag.withDescription("Days after which weights that stay are verified byte for byte once more; without it they are not"),
      Flag.filter(
        (days) => days >= 1,
        () => "a number of days, 1 or more"
      ),
      Flag.optional
    ),
    dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Only tells what would be removed"), Flag.withDefault(false))
  },
  Effect.fn(
    function* ({ ageDays, directory, dryRun, verifyDays }) {
      const { forget, list, now } = yield* NeededWeights
      let removed = 0
      let damaged = 0
      yield* cleanStore({
        root: directory,
        now,
        needed: list,
        forget,
        age: Duration.toMillis(Duration.days(ageDays)),
        dryRun,
        verifyAge: Option.getOrNull(Option.map(verifyDays, (days) => Duration.toMillis(Duration.days(days)))),
        onVerified: ({ commit, count, repo, wrong }) => {
          if (wrong === null) return Console.log(`verified ${repo} at ${commit}`)
          damaged++
          const others = count === 1 ? "" : ` and ${count - 1} more files`
          return Console.log(`DAMAGED ${repo} at ${commit}: ${wrong}${others} differ from the commit; the next deployment of it downloads them again`)
        },
        onRemoved: ({ commit, partial, repo, unusedSince }) => {
          removed++
          const what = `${repo} at ${commit}${partial ? ", begun" : ""}`
          return Console.log(`${dryRun ? "would remove" : "removed"} ${what}, unused since ${new Date(unusedSince).toISOString()}`)
        }
      })
      yield* Console.log(removed === 0 ? "Nothing is to be removed." : `${removed} ${dryRun ? "would be removed" : "removed"}.`)
      if (damaged > 0) return yield* new CommandError({ message: `${damaged} of the stored commits are damaged; see above. Look at the disk.`, exitCode: 1 })
    },
    Effect.catchTags({ StoreFull: ({ message }) => new CommandError({ message, exitCode: 1 }) })
  )
).pipe(
  Command.withShortDescription("Removes downloaded weights that no model has needed for some time."),
  Command.withDescription(
    "Removes from a weights store the commits that no model has needed for some time, and what dead downloads of them left. With --verify-days it also verifies those that stay. Takes DATABASE_URL and the other settings of the database. It may run beside downloads."
  )
)
