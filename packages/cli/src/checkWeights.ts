import { checkWeights } from "@seatrial/hub"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { weightFlags } from "./weightFlags.ts"

const failed = (code: string, text: string, exitCode = 3) => new CommandError({ message: `${code}: ${text}`, exitCode })

/**
 * Runs first in an engine pod that reads the weights store directly. Checks that the files have not changed since they
 * were downloaded and verified. On failure its last line is `<code>: <text>`. Exit code 3 means that a retry does not
 * help.
 */
export const checkWeightsCommand = Command.make(
  "check-weights",
  {
    ...weightFlags,
    directory: Flag.String("directory").pipe(Flag.withDescription("Folder with the files")),
    adapterDirectory: Flag.String("adapter-directory").pipe(Flag.withDescription("Folder with the adapter's files"), Flag.optional),
    verify: Flag.Literals("verify", ["recorded", "full"]).pipe(
      Flag.withDescription("`recorded`: check whether the files have changed since they were verified. `full`: verify all bytes"),
      Flag.withDefault("recorded")
    )
  },
  Effect.fn(
    function* ({ adapterCommit, adapterDirectory, adapterManifest, adapterRepo, commit, directory, manifest, repo, verify }) {
      const adapter = Option.all({ repo: adapterRepo, commit: adapterCommit, directory: adapterDirectory, manifest: adapterManifest })
      for (const each of [{ repo, commit, directory, manifest }, ...Option.toArray(adapter)]) {
        const files = yield* checkWeights({ ...each, verify })
        yield* Console.log(`${files} files of ${each.repo} at ${each.commit} are unchanged since the download`)
      }
    },
    Effect.catchTags({
      StoreFull: ({ message }) => failed("weights_store_full", message, 1),
      WeightsAbsent: ({ message }) => failed("weights_missing", message),
      WeightsMismatch: ({ detail }) => failed("weights_mismatch", detail)
    })
  )
).pipe(
  Command.withShortDescription("Checks that a model's files in the weights store are unchanged since the download."),
  Command.withDescription(
    "Checks that a model's files in the weights store are unchanged since they were downloaded and verified. Engine pods run this command in an init container if their host class has no weightsCache. The command writes nothing."
  )
)
