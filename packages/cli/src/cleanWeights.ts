import { cleanStore } from "@seatrial/hub"
import { NeededWeights } from "@seatrial/store"
import { Console, Duration, Effect } from "effect"
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
    dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Only tells what would be removed"), Flag.withDefault(false))
  },
  Effect.fn(
    function* ({ ageDays, directory, dryRun }) {
      const { forget, list } = yield* NeededWeights
      let removed = 0
      yield* cleanStore({
        root: directory,
        needed: list,
        forget,
        age: Duration.toMillis(Duration.days(ageDays)),
        dryRun,
        onRemoved: ({ commit, partial, repo, unusedSince }) => {
          removed++
          const what = `${repo} at ${commit}${partial ? ", begun" : ""}`
          return Console.log(`${dryRun ? "would remove" : "removed"} ${what}, unused since ${new Date(unusedSince).toISOString()}`)
        }
      })
      yield* Console.log(removed === 0 ? "Nothing is to be removed." : `${removed} ${dryRun ? "would be removed" : "removed"}.`)
    },
    Effect.catchTags({ StoreFull: ({ message }) => new CommandError({ message, exitCode: 1 }) })
  )
).pipe(
  Command.withShortDescription("Removes downloaded weights that no model has needed for some time."),
  Command.withDescription(
    "Removes from a weights store the commits that no model has needed for some time, and what dead downloads of them left. Takes DATABASE_URL and the other settings of the database. It may run beside downloads."
  )
)
