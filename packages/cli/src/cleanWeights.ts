import { cleanStore } from "@seatrial/hub"
import { NeededWeights } from "@seatrial/store"
import { Console, Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"

/** Removes commits from the weights store that no model has needed for some time. */
export const cleanWeightsCommand = Command.make(
  "clean-weights",
  {
    directory: Flag.String("directory").pipe(Flag.withDescription("Folder of the weights store")),
    ageDays: Flag.Int("age-days").pipe(
      Flag.withDescription("Remove commits that no model has needed for this many days"),
      Flag.filter(
        (days) => days >= 1,
        () => "a number of days, 1 or more"
      ),
      Flag.withDefault(30)
    ),
    verifyDays: Flag.Int("verify-days").pipe(
      Flag.withDescription("Verify all bytes of the remaining weights again after this many days (default: never)"),
      Flag.filter(
        (days) => days >= 1,
        () => "a number of days, 1 or more"
      ),
      Flag.optional
    ),
    dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Only print what would be removed"), Flag.withDefault(false))
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
          const moreFiles = count === 1 ? "" : ` and ${count - 1} more files`
          return Console.log(`DAMAGED ${repo} at ${commit}: ${wrong}${moreFiles} differ from the commit; the next deployment downloads them again`)
        },
        onRemoved: ({ commit, partial, repo, unusedSince }) => {
          removed++
          const what = `${repo} at ${commit}${partial ? " (incomplete)" : ""}`
          return Console.log(`${dryRun ? "would remove" : "removed"} ${what}, unused since ${new Date(unusedSince).toISOString()}`)
        }
      })
      yield* Console.log(removed === 0 ? "Nothing to remove." : `${removed} ${dryRun ? "would be removed" : "removed"}.`)
      if (damaged > 0) return yield* new CommandError({ message: `${damaged} stored commits are damaged; see above. Check the disk.`, exitCode: 1 })
    },
    Effect.catchTags({ StoreFull: ({ message }) => new CommandError({ message, exitCode: 1 }) })
  )
).pipe(
  Command.withShortDescription("Removes downloaded weights that no model has needed for some time."),
  Command.withDescription(
    "Removes from a weights store the commits that no model has needed for some time, and the remains of their abandoned downloads. With --verify-days, the command also verifies the remaining commits. Requires DATABASE_URL and accepts the other database settings. The command is safe to run during downloads."
  )
)
